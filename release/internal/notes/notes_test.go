package notes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const changelog = `# Changelog

Notes, as [Keep a Changelog](https://keepachangelog.com/) has them.

## [Unreleased]

### Added

- New ([guide](docs/a.md#b), [home](https://example.com/)).

### Development

- ` + "`make`" + ` is faster.

## [0.1.0] - 2026-11-24

- Old.

## [0.0.1] - 2026-11-20
`

func TestExtract(t *testing.T) {
	cases := map[string]struct{ version, want string }{
		"the version's":      {"v0.1.0", "# Lockstep v0.1.0\n\n- Old.\n"},
		"what is unreleased": {"v0.2.0", "# Lockstep v0.2.0\n\n### Added\n\n- New ([guide](https://git.example/docs/a.md#b), [home](https://example.com/)).\n"},
		"an empty section":   {"v0.0.1", "# Lockstep v0.0.1\n\n### Added\n\n- New ([guide](https://git.example/docs/a.md#b), [home](https://example.com/)).\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Extract(changelog, c.version, "https://git.example/")
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("error %v, (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := Extract("## [Unreleased]\n\n## [0.1.0]\n", "v0.1.0", ""); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("error %v", err)
	}
}
