package build

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEnvironment: what a person has set for builds of their own changes no release.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"GOFLAGS": "-tags=mine", "GOAMD64": "v3", "GOARM64": "v9.0", "CGO_ENABLED": "1", "GOEXPERIMENT": "mine", "GOFIPS140": "latest", "GOWORK": "/go.work",
		"GOOS": "plan9", "GOARCH": "386",
	} {
		t.Setenv(name, value)
	}
	want := map[string]string{
		"GOFLAGS": "", "GOAMD64": "v1", "GOARM64": "v8.0", "CGO_ENABLED": "0", "GOEXPERIMENT": "", "GOFIPS140": "off", "GOWORK": "off",
		"GOOS": "windows", "GOARCH": "arm64",
	}
	got := map[string]string{}
	for _, variable := range environment(Target{"windows", "arm64"}) { // the last one counts
		name, value, _ := strings.Cut(variable, "=")
		got[name] = value
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s=%s, want %q", name, got[name], value)
		}
	}
}

func TestParseTargets(t *testing.T) {
	got, err := ParseTargets("linux/amd64,windows/arm64")
	if want := []Target{{"linux", "amd64"}, {"windows", "arm64"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", "linux", "linux/", "/amd64", "linux/amd64,"} {
		if got, err := ParseTargets(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// TestModules: the modules of the plugin have folders, and the main module is not among them.
func TestModules(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	b := Builder{Root: root}
	modules, err := b.Modules(t.Context(), "kubectl-lockstep", Target{"linux", "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(slices.Collect(maps.Keys(modules)), func(m string) bool { return strings.HasPrefix(m, "k8s.io/client-go@v") })
	for module, dir := range modules {
		if !filepath.IsAbs(dir) || strings.HasPrefix(module, "github.com/lockstep-dns/") {
			t.Errorf("module %s in %q", module, dir)
		}
	}
	if !found {
		t.Errorf("client-go is not among %v", modules)
	}
}
