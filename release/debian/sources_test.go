package debian

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTranslate: another suite comes from the same mirrors, by the same keys; other sources stay out.
func TestTranslate(t *testing.T) {
	const lines = `# deb http://commented.example bookworm main
deb http://deb.debian.org/debian bookworm main contrib
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm-updates main
deb-src http://deb.debian.org/debian bookworm main
deb https://packages.example/apt bookworm-own main
deb http://security.debian.org/debian-security bookworm-security main
deb http://deb.debian.org/debian bookworm-backports main
`
	want := `deb http://deb.debian.org/debian trixie main contrib
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian trixie-updates main
deb http://security.debian.org/debian-security trixie-security main
`
	if diff := cmp.Diff(want, translateLines(lines, "bookworm", "trixie")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	const stanzas = `Types: deb
# a comment
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://deb.nodesource.com/node_20.x
Suites: nodistro
Components: main
`
	want = `Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

`
	if diff := cmp.Diff(want, translateStanzas(stanzas, "bookworm", "trixie")); diff != "" {
		t.Errorf("stanzas (-want +got):\n%s", diff)
	}
}

func TestSuiteOf(t *testing.T) {
	for text, want := range map[string]string{
		"PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID=debian\n": "bookworm", "ID=ubuntu\nVERSION_CODENAME=noble\n": "", "": "",
	} {
		if got := suiteOf(text); got != want {
			t.Errorf("%q is of %q, want %q", text, got, want)
		}
	}
}

// TestForeignSuite: packages of another suite have sources and lists of their own.
func TestForeignSuite(t *testing.T) {
	r := Repository{Dir: "/cache", Suite: "sid"}
	got := r.options("download", "-qq", "bind9")
	for _, want := range []string{"Dir::State=/cache/sid/state", "Dir::Etc::sourcelist=/dev/null", "Dir::Etc::sourceparts=/cache/sid/sources.d", "Dir::State::status=/dev/null"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	if strings.Contains(strings.Join(got, " "), "APT::Architecture") || r.lists() != "/cache/sid/state/lists" {
		t.Errorf("options %q, lists %s", got, r.lists())
	}
}
