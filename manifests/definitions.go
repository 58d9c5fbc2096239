// Package manifests holds what of the installation the program itself needs to know.
package manifests

import (
	"embed"
	"io/fs"
)

//go:embed crds/*_*.yaml
var files embed.FS

// Definitions are the CustomResourceDefinitions of the stored kinds, as they are installed, one file each.
func Definitions() fs.FS {
	crds, err := fs.Sub(files, "crds")
	if err != nil {
		panic(err) // The name is valid.
	}
	return crds
}
