// Package manifests embeds the parts of the installation that the program itself needs.
package manifests

import (
	"embed"
	"io/fs"
)

//go:embed crds/*_*.yaml
var files embed.FS

//go:embed base/admission.yaml
var admission []byte

// Admission returns the webhook configurations as they are installed: two YAML documents.
func Admission() []byte { return admission }

// Definitions returns the CustomResourceDefinitions of the stored kinds, as they are installed, one file each.
func Definitions() fs.FS {
	crds, err := fs.Sub(files, "crds")
	if err != nil {
		panic(err) // The name is valid.
	}
	return crds
}
