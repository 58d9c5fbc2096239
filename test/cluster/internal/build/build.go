package build

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/host"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// command is the package of the executable.
const command = "github.com/lockstep-dns/lockstep/test/cluster/kubernetes"

// Ensure builds what is not built yet. Of several callers one builds and the
// others wait for it. It calls linking once nothing is left to compile.
func (c *Cache) Ensure(ctx context.Context, p *progress.Printer, linking func()) error {
	linking = sync.OnceFunc(linking)
	defer linking()
	if c.Built() {
		return nil
	}
	if err := os.MkdirAll(c.Bin, 0o755); err != nil {
		return err
	}
	unlock, err := host.Lock(filepath.Join(filepath.Dir(c.Bin), "lock"), func() {
		p.Say("waiting for another process that builds Kubernetes %s", c.Version)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if c.Built() {
		return nil
	}
	err = p.Phase(fmt.Sprintf("building Kubernetes %s and etcd (once; some 10 to 20 minutes on 2 cores)", c.Version),
		func(n *progress.Note) error { return c.compileKubernetes(ctx, n, linking) })
	if err != nil {
		return err
	}
	return c.linkComponents()
}

func (c *Cache) compileKubernetes(ctx context.Context, n *progress.Note, linking func()) error {
	out := c.Path(executable)
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-ldflags", c.flags, "-o", out+".new", "./kubernetes")
	cmd.Dir = c.module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("building Kubernetes: %w; is Go installed and on PATH?", err)
	}
	output := watchBuild(stderr, n, linking)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("building Kubernetes: %w:\n%s", err, output)
	}
	return os.Rename(out+".new", out)
}

// watchBuild counts what go build -v reports and returns the rest: its errors. It
// calls linking when the command itself, the last package, is compiled.
func watchBuild(r io.Reader, n *progress.Note, linking func()) string {
	var packages, downloads int
	var rest strings.Builder
	for s := bufio.NewScanner(r); s.Scan(); {
		switch line := s.Text(); {
		case strings.HasPrefix(line, "go: downloading "):
			downloads++
		case !strings.ContainsAny(line, " #:"):
			packages++
			if line == command {
				linking()
			}
		default:
			fmt.Fprintln(&rest, line)
		}
		n.Set("%d modules downloaded, %d packages compiled", downloads, packages)
	}
	return rest.String()
}

// linkComponents gives each component its name. The link that is made last makes the
// cache complete.
func (c *Cache) linkComponents() error {
	for _, name := range Components {
		_ = os.Remove(c.Path(name))
		if err := os.Symlink(executable, c.Path(name)); err != nil {
			return fmt.Errorf("naming %s: %w", name, err)
		}
	}
	return nil
}
