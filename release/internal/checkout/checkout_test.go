package checkout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repository is a checkout of one commit, of a fixed time.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	git(t, root, "init", "--quiet")
	writeFile(t, filepath.Join(root, "a"), "a")
	commit(t, root)
	return root
}

func commit(t *testing.T, root string) {
	t.Helper()
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "--message", "Commit")
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-11-24T12:00:00+0200")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		tags    []string // before HEAD
		at      []string // at HEAD
		version string
		want    string // without the commit
		err     string
	}{
		"no tag":                   {want: "v0.0.0-20261124100000-"},
		"a tag before":             {tags: []string{"v0.1.0", "v0.0.9"}, want: "v0.1.1-0.20261124100000-"},
		"a tag":                    {tags: []string{"v0.1.0"}, at: []string{"v0.2.0", "v0.1.9"}, want: "v0.2.0"},
		"a tag that is no version": {at: []string{"vNext"}, want: "v0.0.0-20261124100000-"},
		"chosen":                   {version: "v0.3.0-rc.1", want: "v0.3.0-rc.1"},
		"chosen, and the tag":      {at: []string{"v0.3.0"}, version: "v0.3.0", want: "v0.3.0"},
		"of another commit":        {tags: []string{"v0.3.0"}, version: "v0.3.0", err: "the tag v0.3.0 is at commit"},
		"without v":                {version: "0.3.0", err: `version "0.3.0": expected v`},
		"too short":                {version: "v0.3", err: `version "v0.3": expected v`},
		"with build metadata":      {version: "v0.3.0+a", err: `version "v0.3.0+a": expected v`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := repository(t)
			for _, tag := range c.tags {
				git(t, root, "tag", tag)
			}
			writeFile(t, filepath.Join(root, "b"), "b")
			commit(t, root)
			for _, tag := range c.at {
				git(t, root, "tag", tag)
			}
			got, err := Open(t.Context(), root, c.version, false)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if c.err == "" && (!strings.HasPrefix(got.Version, c.want) || strings.HasSuffix(c.want, "-") != (len(got.Version) == len(c.want)+12)) {
				t.Errorf("version %s, want %s", got.Version, c.want)
			}
			if want := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC); !got.Time.Equal(want) || got.Time.Location() != time.UTC {
				t.Errorf("time %s, want %s", got.Time, want)
			}
		})
	}
}

func TestUncommittedChanges(t *testing.T) {
	for name, change := range map[string]string{"a changed file": "a", "a new file": "b"} {
		t.Run(name, func(t *testing.T) {
			root := repository(t)
			writeFile(t, filepath.Join(root, change), "changed")
			if _, err := Open(t.Context(), root, "", false); err == nil || !strings.Contains(err.Error(), "not committed") || !strings.Contains(err.Error(), change) {
				t.Errorf("error %v", err)
			}
			if _, err := Open(t.Context(), root, "", true); err != nil {
				t.Errorf("allowed: %v", err)
			}
		})
	}
}
