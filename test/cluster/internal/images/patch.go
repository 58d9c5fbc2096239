package images

import (
	"context"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	recipes "github.com/lockstep-dns/lockstep/release/images"

	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/oci"
)

// Patched returns the images of all releases of BIND with the newest packages that the mirrors have. Their tags are the packages' versions, so that another
// version is another image. flag is what --bind9-image of the fleet manager takes.
func (b Builder) Patched(ctx context.Context) (all []Recipe, flag string, err error) {
	for i, release := range recipes.BINDReleases {
		sources, err := release.Find(ctx, debian.Repository{Dir: filepath.Join(b.Cache, "debian")}, true)
		if err != nil {
			return nil, "", err
		}
		tag := versionTag(sources.Version())
		if i > 0 {
			flag += "," + release.Version + "="
		}
		flag += "lockstep-bind9:" + tag
		all = append(all, Recipe{BIND(tag), "patched-bind9-" + release.Version + ".tar", func(ctx context.Context) (oci.Image, error) {
			image, _, err := sources.Image(ctx, BIND(tag), runtime.GOARCH)
			return image, err
		}})
	}
	return all, flag, nil
}

var notInTags = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// versionTag turns a version of Debian's into a tag: 9.20.30-1-deb13u1 of 1:9.20.30-1~deb13u1.
func versionTag(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	return notInTags.ReplaceAllString(version, "-")
}
