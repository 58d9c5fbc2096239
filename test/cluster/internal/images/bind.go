package images

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	recipes "github.com/lockstep-dns/lockstep/release/images"

	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/oci"
)

// BIND is the name of the image of a release of BIND, as containerd and the kubelet know it.
func BIND(release string) string { return "docker.io/library/lockstep-bind9:" + release }

// Servers returns the images of all releases of BIND.
func (b Builder) Servers() []Recipe {
	var all []Recipe
	for _, release := range recipes.BINDReleases {
		file := "lockstep-bind9-" + release.Version + ".tar"
		all = append(all, Recipe{BIND(release.Version), file, func(ctx context.Context) (oci.Image, error) { return b.buildBIND(ctx, release, file) }})
	}
	return all
}

// buildBIND returns no image if the packages are those of the archive that is there. If the mirror has newer ones than apt's lists say,
// they are renewed.
func (b Builder) buildBIND(ctx context.Context, release recipes.BINDRelease, file string) (oci.Image, error) {
	var image oci.Image
	for _, refresh := range []bool{false, true} {
		sources, err := release.Find(ctx, debian.Repository{Dir: filepath.Join(b.Cache, "debian")}, refresh)
		if err != nil {
			return oci.Image{}, err
		}
		if old, ok, err := oci.Inspect(filepath.Join(b.Out(), file)); err == nil && ok && old.Inputs == sources.Inputs(runtime.GOARCH) {
			return oci.Image{}, nil
		}
		image, _, err = sources.Image(ctx, BIND(release.Version), runtime.GOARCH)
		if err == nil {
			return image, nil
		}
		if refresh {
			return image, fmt.Errorf("building the image of BIND %s: %w", release.Version, err)
		}
	}
	return image, nil
}
