package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/oci"
)

const (
	// bindRecipe changes when this file makes another image of the same
	// packages.
	bindRecipe = "1"
	bindUser   = "101:101"
)

// BINDRelease is a release of BIND, and where its packages are from.
type BINDRelease struct {
	Version string // 9.20
	Suite   string // the codename of the Debian release that has it
	// Distribution is that Debian release, as bills of materials name it.
	Distribution string
}

// BINDReleases are the releases that servers can run, the default one first.
var BINDReleases = []BINDRelease{{"9.20", "trixie", "debian-13"}, {"9.18", "bookworm", "debian-12"}}

// bindPackages have the programs; the libraries' packages follow from them.
var bindPackages = []string{"bind9", "bind9-libs", "bind9-utils"}

var bindPrograms = []string{"/usr/sbin/named", "/usr/bin/named-checkconf"}

// BINDSources are the packages that an image of BIND is made of.
type BINDSources struct {
	repository debian.Repository
	packages   []debian.Package
}

// Find finds the packages of the release in apt's lists, which a new machine has not
// fetched and an old one may have to renew. It renews them first if refresh is set.
// The repository's suite is the release's.
func (r BINDRelease) Find(ctx context.Context, repository debian.Repository, refresh bool) (BINDSources, error) {
	repository.Suite = r.Suite
	packages, err := resolvePackages(ctx, repository, refresh)
	if err != nil {
		return BINDSources{}, fmt.Errorf("finding the packages of BIND %s: %w", r.Version, err)
	}
	s := BINDSources{repository, packages}
	if !strings.Contains(s.Version(), r.Version+".") {
		return s, fmt.Errorf("the suite %s of Debian has BIND %s, not %s", r.Suite, s.Version(), r.Version)
	}
	return s, nil
}

func resolvePackages(ctx context.Context, repository debian.Repository, refresh bool) ([]debian.Package, error) {
	if !refresh {
		if packages, err := repository.Resolve(ctx, bindPackages); err == nil {
			return packages, nil
		}
	}
	if err := repository.Update(ctx); err != nil {
		return nil, err
	}
	return repository.Resolve(ctx, bindPackages)
}

// Version returns the version of the package bind9, for example 1:9.18.49-1~deb12u3.
func (s BINDSources) Version() string {
	for _, p := range s.packages {
		if p.Name == "bind9" {
			return p.Version()
		}
	}
	return ""
}

// Inputs names what the image is made of.
func (s BINDSources) Inputs(arch string) string {
	h := sha256.New()
	fmt.Fprintln(h, bindRecipe, arch)
	for _, p := range s.packages {
		fmt.Fprintln(h, p.Name, p.SHA256)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Image returns named with the libraries it needs, for a user without rights on a
// file system that is read-only except for what is mounted on the folders that bind
// owns. With it come the control files of the packages that it has files of.
func (s BINDSources) Image(ctx context.Context, name, arch string) (oci.Image, []string, error) {
	if err := s.repository.Download(ctx, s.packages); err != nil {
		return oci.Image{}, nil, err
	}
	tree, err := s.repository.Unpack(ctx, s.packages)
	if err != nil {
		return oci.Image{}, nil, err
	}
	programs, err := tree.Programs(bindPrograms...)
	if err != nil {
		return oci.Image{}, nil, err
	}
	var controls []string
	for _, name := range programs.Packages {
		controls = append(controls, string(tree.Controls[name]))
	}
	return oci.Image{
		Name: name, Arch: arch, Inputs: s.Inputs(arch), Files: bindFiles(tree, programs),
		Config: oci.Config{
			User:         bindUser,
			Entrypoint:   []string{"/usr/sbin/named"},
			Cmd:          []string{"-g", "-c", "/etc/bind/named.conf"},
			WorkingDir:   "/var/cache/bind",
			ExposedPorts: map[string]struct{}{"5353/tcp": {}, "5353/udp": {}},
		},
	}, controls, nil
}
