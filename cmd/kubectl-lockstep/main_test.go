//go:build !core

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/plugin"
)

// TestExtensions: the commands of extensions connect and end as those of the plugin do.
func TestExtensions(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	part := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(part, []byte("@ 60 SOA ns1 h 1 1 1 1 1\n@ NS ns1\nns1 A 192.0.2.1\nsub NS ns1.example.net.\nsub TXT hidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"--help":                                {0, "  import "},
		"import --help":                         {0, "kubectl lockstep import --zone example.com --server 192.0.2.53"},
		"import --server 192.0.2.1 --file x":    {2, "error: import: --zone is missing"},
		"import --zone x.y --file /not/there":   {2, "error: reading the zone file: open /not/there"},
		"import -n x --zone x.y --file " + part: {1, "TXT: left out"},
		"migrate --help":                        {0, "kubectl lockstep migrate"},
		"migrate --server https://127.0.0.1:1":  {2, "127.0.0.1:1"},
		"migrate --context nowhere":             {2, `context "nowhere" does not exist`},
	} {
		var out, errOut bytes.Buffer
		code := plugin.Run(t.Context(), strings.Fields(args), &out, &errOut, extensions...)
		if code != want.code || !strings.Contains(out.String()+errOut.String(), want.says) {
			t.Errorf("kubectl lockstep %s: exit code %d, want %d and %q:\n%s%s", args, code, want.code, want.says, &out, &errOut)
		}
	}
}
