package node

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func layout(t *testing.T) Layout {
	t.Helper()
	l := Layout{State: filepath.Join(t.TempDir(), "state"), Run: filepath.Join(t.TempDir(), "run"), Bin: "/bin"}
	for _, dir := range l.Folders() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.WriteConfig("example/pause:1"); err != nil {
		t.Fatal(err)
	}
	if err := l.EnsureCertificates(); err != nil {
		t.Fatal(err)
	}
	if err := l.WriteKubeconfigs(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Every component must find its inputs, or nothing would notice a typing error
// in a path before it starts.
func TestInputsExist(t *testing.T) {
	l := layout(t)
	for _, c := range slices.Concat(l.Stages()...) {
		if _, err := c.Fingerprint(); err != nil {
			t.Error(err)
		}
		for _, arg := range c.Args {
			_, path, ok := strings.Cut(arg, "="+l.State)
			if !ok || strings.HasPrefix(path, "/etcd") || strings.HasPrefix(path, "/kubelet") {
				continue
			}
			if _, err := os.Stat(l.State + path); err != nil {
				t.Errorf("%s: argument %s: %v", c.Name, arg, err)
			}
		}
	}
}

func TestEveryAddressIsUsedOnce(t *testing.T) {
	seen := map[string]string{}
	for _, c := range slices.Concat(layout(t).Stages()...) {
		for _, address := range c.Listens {
			if other, ok := seen[address]; ok {
				t.Errorf("%s and %s both listen on %s", other, c.Name, address)
			}
			seen[address] = c.Name
			host, _, err := net.SplitHostPort(address)
			if err != nil || host != Address && host != "127.0.0.1" {
				t.Errorf("%s listens on %s, which others can reach", c.Name, address)
			}
		}
	}
}

func TestConfigurationIsStable(t *testing.T) {
	l := layout(t)
	before := map[string]string{}
	for _, c := range slices.Concat(l.Stages()...) {
		before[c.Name], _ = c.Fingerprint()
	}
	if err := l.WriteConfig("example/pause:1"); err != nil {
		t.Fatal(err)
	}
	if err := l.EnsureCertificates(); err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(l.Stages()...) {
		if now, _ := c.Fingerprint(); now != before[c.Name] {
			t.Errorf("%s would be started again for no reason", c.Name)
		}
	}
}

func TestRenderedFiles(t *testing.T) {
	l := layout(t)
	cni, err := os.ReadFile(l.Config("cni/10-lockstep.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(cni) {
		t.Errorf("the CNI configuration is not JSON:\n%s", cni)
	}
	for _, file := range []string{"containerd.toml", "kubelet.yaml", "kube-proxy.yaml"} {
		b, err := os.ReadFile(l.Config(file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "<no value>") {
			t.Errorf("%s has a gap:\n%s", file, b)
		}
	}
	info, err := os.Stat(l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's kubeconfig has mode %o", info.Mode().Perm())
	}
}

func TestReadyCondition(t *testing.T) {
	cases := map[string]struct{ body, want string }{
		"ready":     {`{"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}}`, ""},
		"not ready": {`{"status":{"conditions":[{"type":"Ready","status":"False","message":"no network"}]}}`, "no network"},
		"new":       {`{"status":{}}`, "not reported"},
		"no JSON":   {`<html>`, "reading node"},
	}
	for name, c := range cases {
		err := readyCondition([]byte(c.body))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}
