package images

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"

	recipes "github.com/lockstep-dns/lockstep/release/images"

	"github.com/lockstep-dns/lockstep/release/oci"
)

// ExternalDNS returns the image that the component external-dns runs, under the name that its project publishes it by. It holds a
// binary that was built before, and has that binary's version.
func (b Builder) ExternalDNS(binary string) ([]Recipe, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("%w; run `make external-dns`", err)
	}
	name := "registry.k8s.io/external-dns/external-dns:" + info.Main.Version
	build := func(context.Context) (oci.Image, error) {
		body, err := os.ReadFile(binary)
		return oci.Image{
			Name: name, Arch: runtime.GOARCH, Files: []oci.File{{Path: "external-dns", Mode: 0o755, Body: body}},
			Config: oci.Config{User: recipes.Nobody, Entrypoint: []string{"/external-dns"}, WorkingDir: "/"},
		}, err
	}
	return []Recipe{{name, "external-dns.tar", build}}, nil
}
