package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/images"
	"github.com/lockstep-dns/lockstep/release/internal/build"
	"github.com/lockstep-dns/lockstep/release/internal/manifest"
	"github.com/lockstep-dns/lockstep/release/internal/sbom"
	"github.com/lockstep-dns/lockstep/release/oci"
)

// makeLockstepImage makes the image of the components.
func (r *release) makeLockstepImage(ctx context.Context) (err error) {
	r.lockstep, err = r.makeProgramImage(ctx, program, "Lockstep: authoritative DNS on Kubernetes")
	return err
}

// makeSidecarImage makes the image of sidecars.
func (r *release) makeSidecarImage(ctx context.Context) (err error) {
	r.sidecar, err = r.makeProgramImage(ctx, sidecar, "The sidecar of Lockstep's DNS servers")
	return err
}

// makeProgramImage makes the image of a program, for all architectures, of what has been built.
func (r *release) makeProgramImage(ctx context.Context, name, title string) (manifest.Image, error) {
	image := manifest.Image{Name: r.registry + "/" + name, Tag: r.Version}
	var parts []oci.Image
	components := map[string][]cdx.Component{}
	for _, arch := range architectures {
		target := build.Target{OS: "linux", Arch: arch}
		body, bill, err := r.readProgram(name, target)
		if err != nil {
			return image, err
		}
		files, err := r.licenses(ctx, name, target)
		if err != nil {
			return image, err
		}
		var texts []oci.File
		for _, f := range files {
			texts = append(texts, oci.File{Path: "licenses/" + f.Path, Body: f.Body})
		}
		parts = append(parts, images.Lockstep(image.Name+":"+image.Tag, arch, body, texts...))
		components[arch] = append(bill.Components, bill.Subject)
	}
	return r.writeImage(image, parts, components, title, "Apache-2.0")
}

// makeBINDImages makes the images of all releases of BIND.
func (r *release) makeBINDImages(ctx context.Context) error {
	r.versions = map[string]string{}
	for _, release := range images.BINDReleases {
		if err := r.makeBINDImage(ctx, release); err != nil {
			return fmt.Errorf("BIND %s: %w", release.Version, err)
		}
	}
	return nil
}

// makeBINDImage makes the image of a release of BIND, of packages of Debian for each architecture.
func (r *release) makeBINDImage(ctx context.Context, release images.BINDRelease) error {
	image := manifest.Image{Name: r.registry + "/lockstep-bind9", Tag: release.Version + "-" + r.Version}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("finding the cache folder: %w; set XDG_CACHE_HOME", err)
	}
	var parts []oci.Image
	components := map[string][]cdx.Component{}
	version := ""
	for _, arch := range architectures {
		repository := debian.Repository{Dir: filepath.Join(cache, "lockstep", "release", "debian"), Arch: arch}
		sources, err := release.Find(ctx, repository, true)
		if err != nil {
			return err
		}
		if version != "" && version != sources.Version() {
			return fmt.Errorf("the mirror has %s for %s and %s for %s: try again when it has one version for both",
				version, architectures[0], sources.Version(), arch)
		}
		version = sources.Version()
		img, controls, err := sources.Image(ctx, image.Name+":"+image.Tag, arch)
		if err != nil {
			return err
		}
		parts = append(parts, img)
		components[arch] = sbom.Packages(release.Distribution, controls)
	}
	base := filepath.Base(image.Name) + "-" + release.Version
	image, err = r.writeImageAs(base, image, parts, components, "BIND for Lockstep, Debian's "+version, "")
	r.servers, r.versions[release.Version] = append(r.servers, manifest.Server{Release: release.Version, Image: image}), version
	return err
}

// writeImage writes an image for several architectures, and a bill of materials for each.
func (r *release) writeImage(image manifest.Image, parts []oci.Image, components map[string][]cdx.Component, title, license string) (manifest.Image, error) {
	return r.writeImageAs(filepath.Base(image.Name), image, parts, components, title, license)
}

// writeImageAs does the same, into files whose names begin with base.
func (r *release) writeImageAs(base string, image manifest.Image, parts []oci.Image, components map[string][]cdx.Component, title, license string) (manifest.Image, error) {
	for i := range parts {
		parts[i].Created, parts[i].Compress = r.Time, true
		parts[i].Config.Labels = map[string]string{
			"org.opencontainers.image.title":    title,
			"org.opencontainers.image.version":  r.Version,
			"org.opencontainers.image.revision": r.Commit,
			"org.opencontainers.image.created":  r.Time.Format(time.RFC3339),
			"org.opencontainers.image.source":   home,
		}
		if license != "" {
			parts[i].Config.Labels["org.opencontainers.image.licenses"] = license
		}
	}
	base += "-image_" + r.Version
	archive := filepath.Join(r.staging, base+".oci.tar")
	digests, err := oci.WriteIndex(archive, parts...)
	if err != nil {
		return image, err
	}
	body, err := os.ReadFile(archive)
	if err != nil {
		return image, err
	}
	if err := r.write(base+".oci.tar", body); err != nil {
		return image, err
	}
	for arch, digest := range digests.Manifests {
		if err := r.writeBill(base+"_linux_"+arch, sbom.Image(image.Name, image.Tag, arch, digest, components[arch])); err != nil {
			return image, err
		}
	}
	image.Digest = digests.Index
	return image, nil
}
