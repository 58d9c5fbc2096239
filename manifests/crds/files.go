// Package crds holds the definitions of the stored kinds, as they are installed, for whoever checks objects without a
// cluster.
package crds

import "embed"

// Files are the CustomResourceDefinitions, one file each.
//
//go:embed *_*.yaml
var Files embed.FS
