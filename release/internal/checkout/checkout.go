// Package checkout knows which commit a release is made of, and refuses what nobody could make again.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Checkout is a working copy of the repository.
type Checkout struct {
	Root    string    // absolute
	Commit  string    // full
	Time    time.Time // of the commit, in UTC
	Version string    // for example v0.1.0
}

// Open reads the checkout at root. Without a version, that of the tag at HEAD is taken, or the pseudo-version that Go has for the commit.
// Changes that are not committed are refused unless dirty ones are allowed.
func Open(ctx context.Context, root, version string, allowDirty bool) (Checkout, error) {
	c := Checkout{Root: root}
	changes, err := c.git(ctx, "status", "--porcelain")
	if err != nil {
		return c, err
	}
	if changes != "" && !allowDirty {
		return c, fmt.Errorf("the checkout has changes that are not committed, so nobody could make this release again:\n%s\n"+
			"commit or stash them, or set ALLOW_DIRTY=1 for a try", changes)
	}
	head, err := c.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return c, err
	}
	var seconds int64
	if _, err := fmt.Sscan(head, &c.Commit, &seconds); err != nil {
		return c, fmt.Errorf("reading the commit %q: %w", head, err)
	}
	c.Time = time.Unix(seconds, 0).UTC()
	if version == "" {
		c.Version, err = c.deriveVersion(ctx)
		return c, err
	}
	c.Version = version
	return c, c.checkVersion(ctx)
}

// deriveVersion returns the tag at HEAD, or the pseudo-version after the last tag.
func (c Checkout) deriveVersion(ctx context.Context) (string, error) {
	tags, err := c.git(ctx, "tag", "--list", "v*", "--points-at", "HEAD", "--sort=-version:refname")
	if err != nil {
		return "", err
	}
	for _, tag := range strings.Fields(tags) {
		if validate(tag) == nil {
			return tag, nil
		}
	}
	older, err := c.git(ctx, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname")
	if err != nil {
		return "", err
	}
	base := ""
	for _, tag := range strings.Fields(older) {
		if validate(tag) == nil {
			base = tag
			break
		}
	}
	return module.PseudoVersion("", base, c.Time, c.Commit[:12]), nil
}

// checkVersion refuses a version of another commit.
func (c Checkout) checkVersion(ctx context.Context) error {
	if err := validate(c.Version); err != nil {
		return err
	}
	tagged, err := c.git(ctx, "rev-parse", "--quiet", "--verify", "refs/tags/"+c.Version+"^{commit}")
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil // not tagged yet
	}
	if err == nil && tagged != c.Commit {
		return fmt.Errorf("the tag %s is at commit %s, and HEAD is at %s: check the tag out, or choose another version", c.Version, tagged, c.Commit)
	}
	return err
}

// validate accepts what is a version of Go modules, of Helm charts and of krew, and a tag of images: no build metadata.
func validate(version string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("version %s: expected v, three numbers, and perhaps a pre-release, such as v0.1.0 or v0.1.0-rc.1", strconv.Quote(version))
	}
	return nil
}

func (c Checkout) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.Root
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
