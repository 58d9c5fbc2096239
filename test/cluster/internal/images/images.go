// Package images builds the images that the dev cluster runs, as archives,
// and loads them into its containerd. No registry is asked for anything: those
// that users run are described in release/images, and the others hold static
// binaries.
package images

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/lockstep-dns/lockstep/release/oci"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// Names of the images, as containerd and the kubelet know them. A pod's
// manifest may leave "docker.io/library/" out.
const (
	Lockstep = "docker.io/library/lockstep:dev"
	Sidecar  = "docker.io/library/lockstep-sidecar:dev"
	Pause    = "docker.io/library/lockstep-pause:1"
	Probe    = "docker.io/library/lockstep-probe:1"
)

// Builder builds images from the repository into archives.
type Builder struct {
	Root   string // of the repository
	Module string // of the cluster
	Cache  string // for downloads, kept between builds
}

// Out returns the folder of the archives.
func (b Builder) Out() string { return filepath.Join(b.Root, "_output", "images") }

// Recipe describes how an image is built, and into which archive.
type Recipe struct {
	name  string // full reference
	file  string // of the archive, without the folder
	build func(context.Context) (oci.Image, error)
}

// archivePath returns the path of the image's archive.
func (b Builder) archivePath(i Recipe) string { return filepath.Join(b.Out(), i.file) }

// Project returns the images that users of this project run.
func (b Builder) Project() []Recipe { return append(b.Components(), b.Servers()...) }

// Components returns the images of Lockstep itself.
func (b Builder) Components() []Recipe {
	return []Recipe{{Lockstep, "lockstep.tar", b.buildLockstep}, {Sidecar, "lockstep-sidecar.tar", b.buildSidecar}}
}

// Sandbox returns the image that every pod needs, one the cluster cannot start
// without.
func (b Builder) Sandbox() []Recipe {
	return []Recipe{{Pause, "lockstep-pause.tar", b.buildPause}}
}

// Probe returns the image that the cluster's own test runs.
func (b Builder) Probe() []Recipe {
	return []Recipe{{Probe, "lockstep-probe.tar", b.buildProbe}}
}

// Build builds the images whose inputs have changed. It goes on after an
// error: one image that cannot be built is no reason to lack the others.
func (b Builder) Build(ctx context.Context, p *progress.Printer, images []Recipe) error {
	var errs []error
	for _, i := range images {
		errs = append(errs, p.Phase("building image "+i.name, func(n *progress.Note) error {
			img, err := i.build(ctx)
			if err != nil {
				return err
			}
			if img.Name == "" {
				n.Set("unchanged")
				return nil
			}
			changed, err := oci.Write(b.archivePath(i), img)
			if !changed {
				n.Set("unchanged")
			}
			return err
		}))
	}
	return errors.Join(errs...)
}
