package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDebianRelease(t *testing.T) {
	for name, c := range map[string]struct{ text, want, err string }{
		"Debian":  {"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n", "debian-12", ""},
		"another": {"PRETTY_NAME=\"Ubuntu 24.04\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n", "", `"Ubuntu 24.04": make the release on Debian 12`},
		"none":    {"", "", "make the release on Debian 12"},
	} {
		file := filepath.Join(t.TempDir(), "os-release")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := debianRelease(file)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
