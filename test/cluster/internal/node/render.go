package node

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/host"
)

//go:embed files/*.tmpl
var files embed.FS

var templates = template.Must(template.ParseFS(files, "files/*.tmpl"))

// templateValues are what the configuration files are made of.
type templateValues struct {
	Name, Address, PodCIDR, Services, LoadBalancers, DNSDomain string
	State, Run, Socket                                         string
	Bridge, PluginDir, PauseImage                              string
}

// WriteConfig writes the components' configuration. A file that is already as
// it should be is left alone.
func (l Layout) WriteConfig(pauseImage string) error {
	v := templateValues{
		Name: Name, Address: Address, PodCIDR: PodCIDR, Services: Services, LoadBalancers: LoadBalancers, DNSDomain: DNSDomain,
		State: l.State, Run: l.Run, Socket: l.Socket(),
		Bridge: host.Bridge, PluginDir: host.PluginDir, PauseImage: pauseImage,
	}
	for name, path := range map[string]string{
		"containerd.toml": l.Config("containerd.toml"),
		"cni.conflist":    l.Config("cni/10-lockstep.conflist"),
		"kubelet.yaml":    l.Config("kubelet.yaml"),
		"kube-proxy.yaml": l.Config("kube-proxy.yaml"),
	} {
		if err := renderTemplate(path, 0o644, name, v); err != nil {
			return err
		}
	}
	return nil
}

// WriteKubeconfigs writes one for each component that is a client of the API
// server, and the administrator's.
func (l Layout) WriteKubeconfigs() error {
	if err := l.writeKubeconfig(l.Kubeconfig(), "admin"); err != nil {
		return err
	}
	for _, client := range []string{"kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		if err := l.writeKubeconfig(l.clientConfig(client), client); err != nil {
			return err
		}
	}
	return nil
}

func (l Layout) writeKubeconfig(path, certificate string) error {
	v := struct{ Server, User, Authority, Certificate, Key string }{Server: Server, User: certificate}
	for file, to := range map[string]*string{
		"ca.crt":             &v.Authority,
		certificate + ".crt": &v.Certificate,
		certificate + ".key": &v.Key,
	} {
		b, err := os.ReadFile(l.PKI(file))
		if err != nil {
			return err
		}
		*to = base64.StdEncoding.EncodeToString(b)
	}
	return renderTemplate(path, 0o600, "kubeconfig", v)
}

func renderTemplate(path string, mode fs.FileMode, name string, v any) error {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name+".tmpl", v); err != nil {
		return fmt.Errorf("rendering %s: %w", filepath.Base(path), err)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b.Bytes()) {
		return nil
	}
	return os.WriteFile(path, b.Bytes(), mode)
}
