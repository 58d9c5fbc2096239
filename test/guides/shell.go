// Package guides runs the commands of the documentation on a cluster, in the order in which a reader types them, and compares what they
// print with what the page shows.
package guides

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// shell is a bash that keeps its variables from one step to the next.
type shell struct {
	in    io.Writer
	lines chan string
}

// endOfStep begins the line that follows the output of a step.
const endOfStep = "end-of-step:"

// newShell starts a shell in a folder that has the files of the repository and those that a page writes.
func newShell(t *testing.T, root string, environment ...string) *shell {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"manifests", "docs"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "_output/bin")+":"+os.Getenv("PATH"), "HOME="+dir, "NO_COLOR=1")
	cmd.Env = append(cmd.Env, environment...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shell{in: in, lines: make(chan string, 1000)}
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() { _ = in.Close() })
	return s
}

// run runs a step, and returns its output and exit code.
func (s *shell) run(text string, limit kube.Patience) (output []string, code int, err error) {
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null 2>&1\nprintf '\\n%s%%s\\n' $?\n", text, endOfStep); err != nil {
		return nil, 0, err
	}
	deadline := time.After(limit.Duration())
	for {
		select {
		case line, open := <-s.lines:
			if status, isEnd := strings.CutPrefix(line, endOfStep); isEnd {
				_, err := fmt.Sscan(status, &code)
				return trimEmpty(output), code, err
			}
			if !open {
				return output, 0, io.ErrUnexpectedEOF
			}
			output = append(output, line)
		case <-deadline:
			return output, 0, fmt.Errorf("no end after %s", limit)
		}
	}
}

// trimEmpty drops empty lines at the end.
func trimEmpty(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
