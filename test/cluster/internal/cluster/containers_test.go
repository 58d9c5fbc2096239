package cluster

import "testing"

func TestIsShim(t *testing.T) {
	const socket = "/run/ours/containerd.sock"
	cases := map[string]struct {
		args []string
		want bool
	}{
		"ours":            {[]string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "1", "-address", socket}, true},
		"the machine's":   {[]string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-address", "/run/containerd/containerd.sock"}, false},
		"another program": {[]string{"/usr/bin/ctr", "-address", socket}, false},
		"address is last": {[]string{"containerd-shim-runc-v2", "-address"}, false},
		"a kernel thread": {nil, false},
	}
	for name, c := range cases {
		if got := isShim(c.args, socket); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
