package guides

import (
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMissing(t *testing.T) {
	kube.WithoutCluster(t)
	for name, c := range map[string]struct {
		shown, output []string
		want          string
	}{
		"ages and serials":     {[]string{"NAME AGE", "www   InSync 3/3 1795230639 7ms"}, []string{"NAME   AGE", "www InSync 3/3 1795273579 1m2s"}, ""},
		"another word":         {[]string{"www InSync"}, []string{"www Stale"}, "www InSync"},
		"another address":      {[]string{"10.96.0.1"}, []string{"10.96.7.2"}, ""},
		"address of examples":  {[]string{"192.0.2.1"}, []string{"192.0.2.2"}, "192.0.2.1"},
		"order":                {[]string{"a", "b"}, []string{"b", "a"}, "b"},
		"ellipsis":             {[]string{"a … c", "…", "e"}, []string{"a b c", "d", "e"}, ""},
		"more than is shown":   {[]string{"b"}, []string{"a", "b", "c"}, ""},
		"nothing":              {[]string{"a"}, nil, "a"},
		"a part is not a line": {[]string{"a"}, []string{"a b"}, "a"},
	} {
		if got := missing(c.shown, c.output); got != c.want {
			t.Errorf("%s: %q is missing, want %q", name, got, c.want)
		}
	}
}
