package images

import (
	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/oci"
)

// bindFixed are the files that are in no package.
var bindFixed = []oci.File{
	{Path: "bin", Link: "usr/bin"},
	{Path: "lib", Link: "usr/lib"},
	{Path: "lib64", Link: "usr/lib64"},
	{Path: "sbin", Link: "usr/sbin"},
	{Path: "usr/lib64", Dir: true},
	{Path: "var/run", Link: "../run"},
	{Path: "etc/passwd", Body: []byte("root:x:0:0:root:/:/nonexistent\nbind:x:101:101:BIND:/var/cache/bind:/nonexistent\n")},
	{Path: "etc/group", Body: []byte("root:x:0:\nbind:x:101:\n")},
	{Path: "etc/bind", Dir: true},
	// Where named writes. A pod mounts a volume on each.
	{Path: "run/named", Dir: true, UID: 101, GID: 101},
	{Path: "var/cache/bind", Dir: true, UID: 101, GID: 101},
}

// bindFiles returns the root file system: the programs and what they need, their
// licenses, and the packages' names and versions where scanners look for them.
func bindFiles(tree *debian.Tree, programs debian.Programs) []oci.File {
	files := append([]oci.File(nil), bindFixed...)
	for path, body := range programs.Executables {
		files = append(files, oci.File{Path: path, Mode: 0o755, Body: body})
	}
	for path, body := range programs.Libraries {
		files = append(files, oci.File{Path: path, Mode: 0o755, Body: body})
	}
	for path, body := range tree.Copyrights(programs.Packages) {
		files = append(files, oci.File{Path: path, Body: body})
	}
	for _, name := range programs.Packages {
		files = append(files, oci.File{Path: "var/lib/dpkg/status.d/" + name, Body: tree.Controls[name]})
	}
	return files
}
