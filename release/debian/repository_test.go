package debian

import (
	"slices"
	"strings"
	"testing"
)

// TestRepository: a repository of another architecture reads and writes nothing of the machine's own.
func TestRepository(t *testing.T) {
	own := Repository{Dir: "/cache"}
	if got, want := own.options("update", "-qq", "x"), []string{"update", "-qq", "-o", "APT::Sandbox::User=root", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if own.lists() != "/var/lib/apt/lists" {
		t.Errorf("lists %s", own.lists())
	}
	other := Repository{Dir: "/cache", Arch: "arm64"}
	got := strings.Join(other.options("download", "-qq", "bind9"), " ")
	for _, want := range []string{
		"APT::Architecture=arm64", "APT::Architectures=arm64", "Dir::State=/cache/arm64/state", "Dir::State::status=/dev/null", "Dir::Cache=/cache/arm64/cache",
	} {
		if !strings.Contains(got, " -o "+want+" ") {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	if other.lists() != "/cache/arm64/state/lists" {
		t.Errorf("lists %s", other.lists())
	}
}
