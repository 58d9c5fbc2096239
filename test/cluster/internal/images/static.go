package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	recipes "github.com/lockstep-dns/lockstep/release/images"

	"github.com/lockstep-dns/lockstep/release/oci"
)

// buildLockstep holds the program of the components and nothing else.
func (b Builder) buildLockstep(ctx context.Context) (oci.Image, error) {
	binary, err := b.buildBinary(ctx, b.Root, "./cmd/lockstep")
	return recipes.Lockstep(Lockstep, runtime.GOARCH, binary), err
}

// buildSidecar holds the program of sidecars and nothing else.
func (b Builder) buildSidecar(ctx context.Context) (oci.Image, error) {
	binary, err := b.buildBinary(ctx, b.Root, "./cmd/lockstep-sidecar")
	return recipes.Lockstep(Sidecar, runtime.GOARCH, binary), err
}

// buildPause holds the process that keeps a pod's namespaces.
func (b Builder) buildPause(ctx context.Context) (oci.Image, error) {
	return b.buildStatic(ctx, b.Module, "./pause", oci.Image{
		Name:   Pause,
		Config: oci.Config{User: recipes.Nobody, Entrypoint: []string{"/pause"}, WorkingDir: "/"},
	})
}

// buildProbe holds the program of the cluster's own test.
func (b Builder) buildProbe(ctx context.Context) (oci.Image, error) {
	return b.buildStatic(ctx, b.Module, "./internal/probe", oci.Image{
		Name:   Probe,
		Config: oci.Config{User: recipes.Nobody, Entrypoint: []string{"/probe"}, WorkingDir: "/"},
	})
}

// buildStatic builds a command of a module and puts it at the top of the image.
func (b Builder) buildStatic(ctx context.Context, module, pkg string, img oci.Image) (oci.Image, error) {
	binary, err := b.buildBinary(ctx, module, pkg)
	img.Arch = runtime.GOARCH
	img.Files = []oci.File{{Path: filepath.Base(pkg), Mode: 0o755, Body: binary}}
	return img, err
}

// buildBinary builds a command of a module. The executable stays beside the archives: Go links it anew only if something in it has
// changed.
func (b Builder) buildBinary(ctx context.Context, module, pkg string) ([]byte, error) {
	executable := filepath.Join(b.Out(), filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", executable, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s in %s: %w:\n%s", pkg, module, err, out)
	}
	return os.ReadFile(executable)
}
