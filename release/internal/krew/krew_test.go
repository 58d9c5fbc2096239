package krew

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestManifest(t *testing.T) {
	out, err := Manifest("v0.1.0", "https://example.com/", []Platform{
		{OS: "linux", Arch: "arm64", URI: "https://example.com/a.tar.gz", SHA256: "ab", Bin: "kubectl-lockstep"},
		{OS: "windows", Arch: "amd64", URI: "https://example.com/a.zip", SHA256: "12e4", Bin: "kubectl-lockstep.exe"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Spec struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	var lines []string
	for _, p := range got.Spec.Platforms {
		lines = append(lines, strings.Join([]string{p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"], p.URI, p.SHA256, p.Bin}, " "))
	}
	want := []string{"linux arm64 https://example.com/a.tar.gz ab kubectl-lockstep", "windows amd64 https://example.com/a.zip 12e4 kubectl-lockstep.exe"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Spec.Version != "v0.1.0" || len(got.Spec.ShortDescription) > 50 {
		t.Errorf("version %s, description %s", got.Spec.Version, got.Spec.ShortDescription)
	}
}
