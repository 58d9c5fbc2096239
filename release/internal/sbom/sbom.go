// Package sbom writes bills of materials in CycloneDX's JSON: which Go modules and Debian packages a program or an image is made of. They
// come from the build information in the program and from the control files of the packages, and are the same for the same files.
package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// Bill is the bill of materials of one thing.
type Bill struct {
	Subject    cdx.Component
	Components []cdx.Component
}

// Program returns the bill of a Go program.
func Program(name, version, file string, body []byte) (Bill, error) {
	info, err := buildinfo.Read(bytes.NewReader(body))
	if err != nil {
		return Bill{}, fmt.Errorf("reading the build information of %s: %w", file, err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	subject := newComponent(cdx.ComponentTypeApplication, name, version, modulePURL(info.Main.Path, version,
		strings.TrimPrefix(info.Path, info.Main.Path+"/"), map[string]string{"goos": settings["GOOS"], "goarch": settings["GOARCH"]}))
	subject.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	sum := sha256.Sum256(body)
	subject.Hashes = sha256Hash(hex.EncodeToString(sum[:]))
	standard := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{newComponent(cdx.ComponentTypeLibrary, "std", standard, modulePURL("std", standard, "", nil))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := newComponent(cdx.ComponentTypeLibrary, module.Path, module.Version, modulePURL(module.Path, module.Version, "", nil))
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) > 0 {
			c.Hashes = sha256Hash(hex.EncodeToString(sum))
		}
		components = append(components, c)
	}
	return Bill{subject, components}, nil
}

// modulePURL returns the package URL of a module, or of a package in it.
func modulePURL(module, version, pkg string, qualifiers map[string]string) *packageurl.PackageURL {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version,
		packageurl.QualifiersFromMap(qualifiers), pkg)
}

// Packages returns Debian packages by their control files. The release of Debian is for example debian-12.
func Packages(release string, controls []string) []cdx.Component {
	components := make([]cdx.Component, 0, len(controls))
	for _, control := range controls {
		fields := parseControl(control)
		qualifiers := map[string]string{"arch": fields["Architecture"], "distro": release}
		if source, _, _ := strings.Cut(fields["Source"], " "); source != "" {
			qualifiers["upstream"] = source
		}
		c := newComponent(cdx.ComponentTypeLibrary, fields["Package"], fields["Version"],
			packageurl.NewPackageURL(packageurl.TypeDebian, "debian", fields["Package"], fields["Version"], packageurl.QualifiersFromMap(qualifiers), ""))
		c.Publisher = fields["Maintainer"]
		components = append(components, c)
	}
	return components
}

// parseControl reads the fields of one line.
func parseControl(control string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(control) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, " ") {
			fields[name] = value
		}
	}
	return fields
}

// Image returns the bill of an image for one architecture, by the digest of its manifest.
func Image(repository, tag, arch, digest string, components []cdx.Component) Bill {
	name := repository[strings.LastIndexByte(repository, '/')+1:]
	subject := newComponent(cdx.ComponentTypeContainer, repository, tag, packageurl.NewPackageURL(packageurl.TypeOCI, "", name, digest,
		packageurl.QualifiersFromMap(map[string]string{"arch": arch, "repository_url": repository, "tag": tag}), ""))
	subject.Hashes = sha256Hash(strings.TrimPrefix(digest, "sha256:"))
	return Bill{subject, components}
}

func newComponent(kind cdx.ComponentType, name, version string, purl *packageurl.PackageURL) cdx.Component {
	return cdx.Component{Type: kind, Name: name, Version: version, PackageURL: purl.String(), BOMRef: purl.String()}
}

func sha256Hash(sum string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
}

// Encode returns the bill as JSON, with the time of the sources.
func (b Bill) Encode(at time.Time) ([]byte, error) {
	components := slices.SortedFunc(slices.Values(b.Components), func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	references := make([]string, 0, len(components))
	for _, c := range components {
		references = append(references, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: &b.Subject}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: b.Subject.BOMRef, Dependencies: &references}}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true).SetEscapeHTML(false)
	err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}
