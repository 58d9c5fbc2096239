package sbom

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

const control = `Package: bind9-libs
Source: bind9 (1:9.18.49-1)
Version: 1:9.18.49-1~deb12u3+b1
Architecture: arm64
Maintainer: Debian DNS Team <team+dns@tracker.debian.org>
Description: Shared Libraries used by BIND 9
 Version: of a line that continues
`

func TestPackages(t *testing.T) {
	purl := "pkg:deb/debian/bind9-libs@1:9.18.49-1~deb12u3%2Bb1?arch=arm64&distro=debian-12&upstream=bind9"
	want := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, Name: "bind9-libs", Version: "1:9.18.49-1~deb12u3+b1", PackageURL: purl, BOMRef: purl,
		Publisher: "Debian DNS Team <team+dns@tracker.debian.org>",
	}}
	if diff := cmp.Diff(want, Packages("debian-12", []string{control})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProgram describes the program that makes releases.
func TestProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "release")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/lockstep-dns/lockstep/release").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bill, err := Program("lockstep", "v0.1.0", file, body)
	if err != nil {
		t.Fatal(err)
	}
	want := "pkg:golang/github.com/lockstep-dns/lockstep/release@v0.1.0?goarch=" + runtime.GOARCH + "&goos=" + runtime.GOOS
	if !strings.HasPrefix(bill.Subject.PackageURL, want) {
		t.Errorf("subject %s, want %s", bill.Subject.PackageURL, want)
	}
	found := map[string]bool{}
	for _, c := range bill.Components {
		found[c.Name] = c.Version != "" && strings.HasPrefix(c.PackageURL, "pkg:golang/"+c.Name+"@"+c.Version)
	}
	if !found["std"] || !found["sigs.k8s.io/kustomize/api"] {
		t.Errorf("components %v", found)
	}
}

func TestEncodeIsReproducible(t *testing.T) {
	components := append(Packages("debian-12", []string{control, strings.ReplaceAll(control, "-libs", "-utils")}), Packages("debian-12", []string{"Package: zlib1g\nVersion: 1\n"})...)
	bill := Image("registry.example/lockstep-bind9", "v0.1.0", "arm64", "sha256:"+strings.Repeat("0", 64), components)
	one, err := bill.Encode(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(bill.Components)
	two, err := bill.Encode(time.Unix(0, 0).In(time.FixedZone("", 3600)))
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("error %v, (-one +two):\n%s", err, cmp.Diff(string(one), string(two)))
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(one), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Timestamp != "1970-01-01T00:00:00Z" || len(*bom.Components) != 3 || bom.Metadata.Component.Name != "registry.example/lockstep-bind9" {
		t.Errorf("%s", one)
	}
}
