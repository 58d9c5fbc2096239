package images

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/release/debian"
	"github.com/lockstep-dns/lockstep/release/oci"
)

func TestLockstep(t *testing.T) {
	got := Lockstep("lockstep:dev", "arm64", []byte("program"), oci.File{Path: "licenses/LICENSE"})
	want := oci.Image{
		Name: "lockstep:dev", Arch: "arm64",
		Files:  []oci.File{{Path: "lockstep", Mode: 0o755, Body: []byte("program")}, {Path: "licenses/LICENSE"}},
		Config: oci.Config{User: "65532:65532", Entrypoint: []string{"/lockstep"}, WorkingDir: "/"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInputs: an image is made again when a package or the architecture differs.
func TestInputs(t *testing.T) {
	sources := func(sum string) BINDSources {
		return BINDSources{packages: []debian.Package{{Name: "bind9", File: "bind9_1%3a9.18.49-1~deb12u3_amd64.deb", SHA256: sum}}}
	}
	one := sources("ab").Inputs("amd64")
	if one != sources("ab").Inputs("amd64") || one == sources("cd").Inputs("amd64") || one == sources("ab").Inputs("arm64") {
		t.Errorf("inputs %s, %s, %s", one, sources("cd").Inputs("amd64"), sources("ab").Inputs("arm64"))
	}
	if got := sources("ab").Version(); got != "1:9.18.49-1~deb12u3" {
		t.Errorf("version %s", got)
	}
}
