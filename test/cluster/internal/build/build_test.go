package build

import (
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

func TestKubernetesVersion(t *testing.T) {
	cases := map[string]struct {
		gomod string
		want  kubernetesRelease
		bad   bool
	}{
		"in a block":     {gomod: "require (\n\ta.b/c v1.0.0\n\tk8s.io/kubernetes v1.37.1\n)", want: kubernetesRelease{"v1.37.1", "1", "37"}},
		"on a line":      {gomod: "require k8s.io/kubernetes v1.40.0-rc.1", want: kubernetesRelease{"v1.40.0-rc.1", "1", "40"}},
		"another module": {gomod: "require k8s.io/kubernetes-csi v1.2.3", bad: true},
		"absent":         {gomod: "module x", bad: true},
	}
	for name, c := range cases {
		got, err := kubernetesVersion([]byte(c.gomod))
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestWatchKeepsErrors(t *testing.T) {
	var n progress.Note
	var compiled string
	got := watchBuild(strings.NewReader(strings.Join([]string{
		"go: downloading k8s.io/api v0.37.1",
		"k8s.io/api/core/v1",
		command,
		"# example/kubernetes",
		"kubernetes/main.go:3:1: syntax error",
	}, "\n")), &n, func() { compiled = n.String() })
	if want := "# example/kubernetes\nkubernetes/main.go:3:1: syntax error\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := " (1 modules downloaded, 2 packages compiled)"; n.String() != want {
		t.Errorf("note %q, want %q", n.String(), want)
	}
	if want := " (1 modules downloaded, 1 packages compiled)"; compiled != want {
		t.Errorf("linking was called at %q, want %q", compiled, want)
	}
}
