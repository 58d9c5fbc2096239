package images

import (
	"context"
	"path/filepath"
	"runtime"

	recipes "github.com/lockstep-dns/lockstep/release/images"

	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/oci"
)

const bindFile = "lockstep-bind9.tar"

// buildBIND returns no image if the packages are those of the archive that is there.
func (b Builder) buildBIND(ctx context.Context) (oci.Image, error) {
	sources, err := recipes.FindBIND(ctx, debian.Repository{Dir: filepath.Join(b.Cache, "debian")}, false)
	if err != nil {
		return oci.Image{}, err
	}
	if old, ok, err := oci.Inspect(b.archivePath(Recipe{file: bindFile})); err == nil && ok && old.Inputs == sources.Inputs(runtime.GOARCH) {
		return oci.Image{}, nil
	}
	img, _, err := sources.Image(ctx, BIND, runtime.GOARCH)
	return img, err
}
