// Package chart packages the Helm chart of a release.
package chart

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/release/internal/archive"
	"github.com/lockstep-dns/lockstep/release/internal/manifest"
)

// Images are those that the chart installs.
type Images struct {
	Lockstep, Sidecar manifest.Image
	Servers           manifest.Servers
}

var (
	versionLine    = regexp.MustCompile(`(?m)^version:.*$`)
	appVersionLine = regexp.MustCompile(`(?m)^appVersion:.*$`)
)

// Package packs the chart in the folder, with the version and the images of the release. It returns the name and the content of the package.
func Package(dir, version string, images Images, at time.Time) (string, []byte, error) {
	name := filepath.Base(dir)
	number := strings.TrimPrefix(version, "v")
	var files []archive.File
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".helmignore" {
			return err
		}
		body, err := os.ReadFile(filepath.Join(dir, file))
		switch {
		case err != nil:
		case file == "Chart.yaml":
			body, err = setVersions(body, number, version)
		case file == "values.yaml":
			body, err = setImages(body, images)
		}
		files = append(files, archive.File{Path: path.Join(name, file), Body: body})
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("reading the chart %s: %w", dir, err)
	}
	packed := name + "-" + number + ".tgz"
	body, err := archive.Pack(packed, files, at)
	return packed, body, err
}

// setVersions sets the two versions in a Chart.yaml. That of the chart has no v, that of what it installs is the tag of the images.
func setVersions(text []byte, chart, app string) ([]byte, error) {
	if len(versionLine.FindAll(text, -1)) != 1 || len(appVersionLine.FindAll(text, -1)) != 1 {
		return nil, fmt.Errorf("expected one line with version: and one with appVersion: in Chart.yaml")
	}
	text = versionLine.ReplaceAll(text, []byte("version: "+chart))
	return appVersionLine.ReplaceAll(text, []byte("appVersion: "+app)), nil
}

// setImages sets the default values that name the images.
func setImages(text []byte, images Images) ([]byte, error) {
	for _, line := range [][2]string{
		{"\n  repository: \"lockstep\"\n", "\n  repository: \"" + images.Lockstep.Name + "\"\n"},
		{"\n  digest: \"\"\n", "\n  digest: \"" + images.Lockstep.Digest + "\"\n"},
		{"\n  sidecarDigest: \"\"\n", "\n  sidecarDigest: \"" + images.Sidecar.Digest + "\"\n"},
		{"\nbind9Image: \"\"\n", "\nbind9Image: \"" + images.Servers.String() + "\"\n"},
	} {
		if n := bytes.Count(text, []byte(line[0])); n != 1 {
			return nil, fmt.Errorf("expected one line %s in values.yaml, got %d", strings.TrimSpace(line[0]), n)
		}
		text = bytes.Replace(text, []byte(line[0]), []byte(line[1]), 1)
	}
	return text, nil
}
