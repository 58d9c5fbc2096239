package images

import "github.com/lockstep-dns/lockstep/release/oci"

// Nobody is the user of images that need no name for theirs.
const Nobody = "65532:65532"

// Lockstep returns the image of the components, or that of sidecars. It holds the one program or the other, at the same place, and, of a
// release, what its licenses ask for.
func Lockstep(name, arch string, binary []byte, licenses ...oci.File) oci.Image {
	return oci.Image{
		Name: name, Arch: arch,
		Files:  append([]oci.File{{Path: "lockstep", Mode: 0o755, Body: binary}}, licenses...),
		Config: oci.Config{User: Nobody, Entrypoint: []string{"/lockstep"}, WorkingDir: "/"},
	}
}
