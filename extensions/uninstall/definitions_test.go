package uninstall

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// Every definition that is installed is watched: a kind that is forgotten here would hang an uninstallation.
func TestEveryDefinitionIsKnown(t *testing.T) {
	files, err := os.ReadDir("../../manifests/crds")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		if group, plural, ok := strings.Cut(strings.TrimSuffix(file.Name(), ".yaml"), "_"); ok && plural != "zonegrants" && plural != "dnsproviders" { // They get no finalizer.
			want = append(want, plural+"."+group)
		}
	}
	var got []string
	for name := range New(&rest.Config{}, "ns", logr.Discard()).resources {
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-installed +known):\n%s", diff)
	}
}
