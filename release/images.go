package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// makeBINDImage makes the image of BIND, of packages of Debian for each architecture.
func (r *release) makeBINDImage(ctx context.Context) error {
	image := manifest.Image{Name: r.registry + "/lockstep-bind9", Tag: images.BINDVersion + "-" + r.Version}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("finding the cache folder: %w; set XDG_CACHE_HOME", err)
	}
	distribution, err := debianRelease("/etc/os-release")
	if err != nil {
		return err
	}
	var parts []oci.Image
	components := map[string][]cdx.Component{}
	version := ""
	for _, arch := range architectures {
		repository := debian.Repository{Dir: filepath.Join(cache, "lockstep", "release", "debian"), Arch: arch}
		sources, err := images.FindBIND(ctx, repository, true)
		if err != nil {
			return err
		}
		if version != "" && version != sources.Version() {
			return fmt.Errorf("the mirror has BIND %s for %s and %s for %s: try again when it has one version for both",
				version, architectures[0], sources.Version(), arch)
		}
		version = sources.Version()
		img, controls, err := sources.Image(ctx, image.Name+":"+image.Tag, arch)
		if err != nil {
			return err
		}
		parts = append(parts, img)
		components[arch] = sbom.Packages(distribution, controls)
	}
	r.bind, err = r.writeImage(image, parts, components, "BIND for Lockstep, Debian's "+version, "")
	return err
}

// writeImage writes an image for several architectures, and a bill of materials for each.
func (r *release) writeImage(image manifest.Image, parts []oci.Image, components map[string][]cdx.Component, title, license string) (manifest.Image, error) {
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
	base := filepath.Base(image.Name) + "-image_" + r.Version
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

// debianRelease reads which release this machine runs from a file such as /etc/os-release, for example debian-12.
func debianRelease(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = strings.Trim(value, `"`)
	}
	if values["ID"] != "debian" {
		return "", fmt.Errorf("the image of BIND is made of packages of Debian 12, and %s says that this is %q: make the release on Debian 12, "+
			"for example in a container of debian:12", file, values["PRETTY_NAME"])
	}
	return values["ID"] + "-" + values["VERSION_ID"], nil
}
