package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/oci"
)

// buildLockstep holds the project's one binary and nothing else.
func (b Builder) buildLockstep(ctx context.Context) (oci.Image, error) {
	return b.buildStatic(ctx, b.Root, "./cmd/lockstep", oci.Image{
		Name:   Lockstep,
		Config: oci.Config{User: nobody, Entrypoint: []string{"/lockstep"}, WorkingDir: "/"},
	})
}

// buildPause holds the process that keeps a pod's namespaces.
func (b Builder) buildPause(ctx context.Context) (oci.Image, error) {
	return b.buildStatic(ctx, b.Module, "./pause", oci.Image{
		Name:   Pause,
		Config: oci.Config{User: nobody, Entrypoint: []string{"/pause"}, WorkingDir: "/"},
	})
}

// buildProbe holds the program of the cluster's own test.
func (b Builder) buildProbe(ctx context.Context) (oci.Image, error) {
	return b.buildStatic(ctx, b.Module, "./internal/probe", oci.Image{
		Name:   Probe,
		Config: oci.Config{User: nobody, Entrypoint: []string{"/probe"}, WorkingDir: "/"},
	})
}

// buildStatic builds a command of a module and puts it at the top of the image. The executable stays beside the archives: Go links it
// anew only if something in it has changed.
func (b Builder) buildStatic(ctx context.Context, module, pkg string, img oci.Image) (oci.Image, error) {
	name := filepath.Base(pkg)
	executable := filepath.Join(b.Out(), name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", executable, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return oci.Image{}, fmt.Errorf("building %s in %s: %w:\n%s", pkg, module, err, out)
	}
	binary, err := os.ReadFile(executable)
	if err != nil {
		return oci.Image{}, err
	}
	img.Arch = runtime.GOARCH
	img.Files = []oci.File{{Path: name, Mode: 0o755, Body: binary}}
	return img, nil
}
