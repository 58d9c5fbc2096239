// Package manifest renders the overlays as files that kubectl apply takes as they are, with the images of a release.
package manifest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Image is an image by its tag and, above all, by its digest: what runs cannot change without a change of the manifests.
type Image struct{ Name, Tag, Digest string }

// String returns the reference, as pods have it.
func (i Image) String() string { return i.Name + ":" + i.Tag + "@" + i.Digest }

// Renderer renders what is below the folder manifests of the repository.
type Renderer struct {
	files             filesys.FileSystem
	lockstep, sidecar Image
	servers           Servers
}

// Server is an image of a release of BIND, such as 9.20.
type Server struct {
	Release string
	Image   Image
}

// Servers are the images of all releases of BIND, the default one first.
type Servers []Server

// String returns them as --bind9-image takes them.
func (s Servers) String() string {
	var b strings.Builder
	for i, server := range s {
		if i > 0 {
			b.WriteString("," + server.Release + "=")
		}
		b.WriteString(server.Image.String())
	}
	return b.String()
}

// NewRenderer reads the manifests of the repository at root.
func NewRenderer(root string, lockstep, sidecar Image, servers Servers) (*Renderer, error) {
	files := filesys.MakeFsInMemory()
	source := os.DirFS(root)
	err := fs.WalkDir(source, "manifests", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		return files.WriteFile("/"+name, body)
	})
	return &Renderer{files, lockstep, sidecar, servers}, err
}

// overlay adds the images of the release to another overlay.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../%s]
images:
- {name: lockstep, newName: %q, newTag: %q, digest: %q}
patches:
- target: {kind: Deployment, name: lockstep-fleet}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}
replacements:
- source: {kind: Deployment, name: lockstep-fleet, fieldPath: "spec.template.spec.containers.[name=fleet].image"}
  targets:
  - select: {kind: Deployment, name: lockstep-fleet}
    fieldPaths: ["spec.template.spec.containers.[name=fleet].env.[name=LOCKSTEP_IMAGE].value"]
`

// Overlay renders an overlay, for example default.
func (r *Renderer) Overlay(name string) ([]byte, error) {
	const folder = "/manifests/overlays/release"
	text := fmt.Sprintf(overlay, name, r.lockstep.Name, r.lockstep.Tag, r.lockstep.Digest, "--bindcar-image="+r.sidecar.String(), "--bind9-image="+r.servers.String())
	if err := r.files.WriteFile(folder+"/kustomization.yaml", []byte(text)); err != nil {
		return nil, err
	}
	return r.Folder(path.Join("overlays", "release"))
}

// Folder renders a folder below manifests as it is, for example crds.
func (r *Renderer) Folder(name string) ([]byte, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(r.files, "/manifests/"+name)
	if err != nil {
		return nil, fmt.Errorf("rendering manifests/%s: %w", name, err)
	}
	return resources.AsYaml()
}
