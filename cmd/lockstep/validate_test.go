package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What the process ends with is how scripts tell bad manifests from a bad call.
func TestValidateStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: bindy.firestoned.io/v1beta1\nkind: ARecord\nmetadata: {name: a}\nspec: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want int
	}{
		"good":              {[]string{"-f", "../../manifests/examples"}, 0},
		"as arguments":      {[]string{"../../manifests/examples/quickstart/zone.yaml"}, 0},
		"bad":               {[]string{"-f", file}, 1},
		"bad, as SARIF":     {[]string{"-f", file, "-o", "sarif"}, 1},
		"no file":           {nil, 2},
		"explained":         {[]string{"--explain", "quotes"}, 0},
		"unknown rule":      {[]string{"--explain", "nonsense"}, 2},
		"an unknown flag":   {[]string{"--nonsense"}, 2},
		"an unknown format": {[]string{"-f", file, "-o", "xml"}, 2},
		"a missing file":    {[]string{"-f", file + ".gone"}, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exitStatus(t, append([]string{"validate"}, tc.args...)...); got != tc.want {
				t.Errorf("status %d, want %d", got, tc.want)
			}
		})
	}
}

// exitStatus returns what the process ends with that is called with these arguments.
func exitStatus(t *testing.T, args ...string) int {
	t.Helper()
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return reportError(err)
	}
	return 0
}
