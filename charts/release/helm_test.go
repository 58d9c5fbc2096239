// Package release tests the chart in ../lockstep on a cluster, with Helm itself: a release is installed, upgraded from the last commit's
// chart, rolled back and uninstalled, and Helm waits for objects of our kinds. Lockstep's usual installation is back afterwards.
package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

const (
	system    = "lockstep-system"
	chartPath = "../lockstep"
	// patience is how long Helm waits.
	patience = "180s"
)

// helm runs Helm, which is a Go tool of this module, and returns what it prints. It fails the test when Helm fails.
func helm(t testing.TB, args ...string) string {
	t.Helper()
	began := time.Now()
	out, err := tryHelm(t.Context(), args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("helm %s: %s", strings.Join(args[:min(3, len(args))], " "), time.Since(began).Round(100*time.Millisecond))
	return out
}

// tryHelm is helm for a command that may fail.
func tryHelm(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "helm"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// formerChart returns the directory of the chart as it was in the last commit, or, when nothing has changed since then, before the last
// commit that changed it. The images are the present ones, which need the definition of each kind that they know, so a chart of other
// kinds does not count. Without one that does, it is the present chart.
func formerChart(t *testing.T) string {
	t.Helper()
	log, err := git(t, "log", "--format=%H", "--", "charts/lockstep")
	commits := strings.Fields(log)
	if err != nil || len(commits) == 0 {
		t.Logf("no commit has a chart (%v): the release is upgraded from the present one", err)
		return chartPath
	}
	for _, commit := range commits {
		if definitionsAt(t, commit) != definitionsAt(t, "HEAD") {
			continue
		}
		if _, err := git(t, "diff", "--quiet", commit, "--", "charts/lockstep"); err != nil {
			t.Logf("the release is upgraded from the chart of %s", commit[:12])
			return checkOut(t, commit)
		}
	}
	t.Log("no other chart has the present kinds: the release is upgraded from the present one")
	return chartPath
}

// definitionsAt names the files of the CustomResourceDefinitions in the chart of a commit.
func definitionsAt(t *testing.T, commit string) string {
	t.Helper()
	names, err := git(t, "ls-tree", "--name-only", commit, "charts/lockstep/templates/crds/")
	if err != nil {
		t.Fatalf("listing the definitions of %s: %v", commit, err)
	}
	return names
}

// checkOut writes the chart of a commit into a directory of its own.
func checkOut(t *testing.T, commit string) string {
	t.Helper()
	directory := t.TempDir()
	archive, err := git(t, "archive", commit, "charts/lockstep")
	if err != nil {
		t.Fatalf("reading the chart of %s: %v", commit, err)
	}
	tar := exec.CommandContext(t.Context(), "tar", "-x", "-C", directory)
	tar.Stdin = strings.NewReader(archive)
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("unpacking the chart of %s: %v\n%s", commit, err, out)
	}
	return filepath.Join(directory, "charts", "lockstep")
}

func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = kube.Root(t)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w %s", args[0], err, problem.String())
	}
	return out.String(), nil
}

// restart returns flags that change the pods of all components, so that an upgrade replaces them. Otherwise the release is like the overlay that
// other tests install.
func restart(revision string) []string {
	flags := []string{"--set", "clusterAPI.enabled=true"}
	for _, component := range []string{"controller", "fleet", "apiserver", "webhook"} {
		flags = append(flags, "--set-string", component+".podAnnotations.revision="+revision)
	}
	return flags
}

// readFile returns a file of the repository.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kube.Root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
