package host

import (
	"slices"
	"strings"
	"testing"
)

func TestMountsBelow(t *testing.T) {
	info := strings.Join([]string{
		`1 0 254:0 / / rw - ext4 /dev/vda rw`,
		`2 1 0:5 / /var/lib/ours/kubelet/volume rw - tmpfs tmpfs rw`,
		`3 1 0:6 / /var/lib/oursnot rw - tmpfs tmpfs rw`,
		`4 2 0:7 / /var/lib/ours/kubelet/volume/a\040b rw - tmpfs tmpfs rw`,
		`5 1 0:8 / /run/ours rw - tmpfs tmpfs rw`,
	}, "\n")
	want := []string{"/run/ours", "/var/lib/ours/kubelet/volume/a b", "/var/lib/ours/kubelet/volume"}
	if got := mountsBelow([]byte(info), []string{"/var/lib/ours", "/run/ours"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
