package apiserver

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Flags are enough for a log of who asked for what.
func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nobody := file("kubeconfig", `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`)
	log := filepath.Join(dir, "audit.log")
	o := NewOptions()
	fs := pflag.NewFlagSet("apiserver", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse([]string{
		"--kubeconfig=" + nobody, "--authentication-kubeconfig=" + nobody, "--authorization-kubeconfig=" + nobody,
		"--authentication-skip-lookup", "--audit-log-path=" + log,
		"--audit-policy-file=" + file("policy", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"),
	}); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.SecureServing.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.SecureServing.Listener.Close() }()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	config, err := o.Config()
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	s.Generic.PrepareRun()
	s.undocumentCommonPaths()
	// Whoever asks for this needs no right, so that kube-apiserver, which is not there, is not asked.
	s.Generic.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil))
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"requestURI":"/livez"`, `"verb":"get"`, `"username":"system:anonymous"`} {
		if !strings.Contains(string(said), want) {
			t.Errorf("%s is not in the log: %s", want, said)
		}
	}
}
