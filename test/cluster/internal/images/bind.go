package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/debian"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/oci"
)

const (
	// bindRecipe changes when this file makes another image of the same
	// packages.
	bindRecipe  = "1"
	bindVersion = "9.18"
	bindUser    = "101:101"
)

// bindPackages have the programs; the libraries' packages follow from them.
var bindPackages = []string{"bind9", "bind9-libs", "bind9-utils"}

var bindPrograms = []string{"/usr/sbin/named", "/usr/bin/named-checkconf"}

// buildBIND returns named with the libraries it needs, for a user without rights on a
// file system that is read-only except for what is mounted on bindFolders.
func (b Builder) buildBIND(ctx context.Context) (oci.Image, error) {
	dir := filepath.Join(b.Cache, "debian")
	packages, err := resolvePackages(ctx, dir)
	if err != nil {
		return oci.Image{}, fmt.Errorf("finding the packages of BIND: %w", err)
	}
	if err := checkBIND(packages); err != nil {
		return oci.Image{}, err
	}
	inputs := bindInputs(packages)
	if old, ok, err := oci.Inspect(b.archivePath(Recipe{file: bindFile})); err == nil && ok && old.Inputs == inputs {
		return oci.Image{}, nil
	}
	if err := debian.Download(ctx, dir, packages); err != nil {
		return oci.Image{}, err
	}
	tree, err := debian.Unpack(ctx, dir, packages)
	if err != nil {
		return oci.Image{}, err
	}
	files, err := bindFiles(tree)
	return oci.Image{
		Name: BIND, Arch: runtime.GOARCH, Inputs: inputs, Files: files,
		Config: oci.Config{
			User:         bindUser,
			Entrypoint:   []string{"/usr/sbin/named"},
			Cmd:          []string{"-g", "-c", "/etc/bind/named.conf"},
			WorkingDir:   "/var/cache/bind",
			ExposedPorts: map[string]struct{}{"5353/tcp": {}, "5353/udp": {}},
		},
	}, err
}

// resolvePackages finds the packages in apt's lists, which a new machine has not
// fetched and an old one may have to renew.
func resolvePackages(ctx context.Context, dir string) ([]debian.Package, error) {
	packages, err := debian.Resolve(ctx, dir, bindPackages)
	if err == nil {
		return packages, nil
	}
	if err := debian.Update(ctx); err != nil {
		return nil, err
	}
	return debian.Resolve(ctx, dir, bindPackages)
}

func checkBIND(packages []debian.Package) error {
	for _, p := range packages {
		if p.Name == "bind9" && !strings.Contains(p.Version(), bindVersion+".") {
			return fmt.Errorf("this machine's Debian has BIND %s, and the image is of %s: "+
				"build it with Docker from manifests/images/bind9", p.Version(), bindVersion)
		}
	}
	return nil
}

func bindInputs(packages []debian.Package) string {
	h := sha256.New()
	fmt.Fprintln(h, bindRecipe, runtime.GOARCH)
	for _, p := range packages {
		fmt.Fprintln(h, p.Name, p.SHA256)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
