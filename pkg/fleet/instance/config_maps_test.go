package instance

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

func TestConfigMapEntry(t *testing.T) {
	text := &corev1.ConfigMap{Data: map[string]string{"named.conf": "text"}, BinaryData: map[string][]byte{"named.conf.zones": []byte("bytes")}}
	for file, want := range map[string]string{"named.conf": "text", "named.conf.zones": "bytes"} {
		if got, err := configMapEntry(text, file); err != nil || got != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if _, err := configMapEntry(text, "named.conf.options"); !errors.Is(err, named.ErrConfig) {
		t.Errorf("a file that is not there: %v", err)
	}
}
