package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What the process ends with says whether the manifests are the zone.
func TestImportStatus(t *testing.T) {
	dir := t.TempDir()
	write := func(name, more string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte("@ 60 SOA ns1 h 1 1 1 1 1\n@ NS ns1\nns1 A 192.0.2.1\n"+more), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	zone := []string{"--zone", "example.com"}
	tests := map[string]struct {
		args []string
		want int
	}{
		"all of it":       {append(zone, "--file", write("good", "")), 0},
		"not all of it":   {append(zone, "--file", write("part", "sub NS ns1.example.net.\nsub TXT hidden\n")), 1},
		"not a zone":      {append(zone, "--file", write("bad", "x A y\n")), 2},
		"a missing file":  {append(zone, "--file", filepath.Join(dir, "gone")), 2},
		"no zone":         {nil, 2},
		"an unknown flag": {[]string{"--nonsense"}, 2},
		"an argument":     {append(zone, "x"), 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exitStatus(t, append([]string{"import"}, tc.args...)...); got != tc.want {
				t.Errorf("status %d, want %d", got, tc.want)
			}
		})
	}
}
