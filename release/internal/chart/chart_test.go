package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/release/internal/manifest"
)

var images = Images{
	Lockstep: manifest.Image{Name: "registry.example.com/lockstep", Tag: "v0.1.0", Digest: "sha256:aa"},
	Sidecar:  manifest.Image{Name: "registry.example.com/lockstep-sidecar", Tag: "v0.1.0", Digest: "sha256:cc"},
	Servers: manifest.Servers{
		{Release: "9.20", Image: manifest.Image{Name: "registry.example.com/lockstep-bind9", Tag: "9.20-v0.1.0", Digest: "sha256:bb"}},
		{Release: "9.18", Image: manifest.Image{Name: "registry.example.com/lockstep-bind9", Tag: "9.18-v0.1.0", Digest: "sha256:dd"}},
	},
}

// The packaged chart of the repository installs the images of the release.
func TestImagesOfTheChart(t *testing.T) {
	name, body, err := Package("../../../charts/lockstep", "v0.1.0", images, time.Unix(0, 0))
	if err != nil || name != "lockstep-0.1.0.tgz" {
		t.Fatalf("%s, %v", name, err)
	}
	var values struct {
		Image      struct{ Repository, Tag, Digest, SidecarDigest string }
		BIND9Image string `json:"bind9Image"`
	}
	if err := yaml.Unmarshal([]byte(unpack(t, body)["lockstep/values.yaml"]), &values); err != nil {
		t.Fatal(err)
	}
	if i := values.Image; i.Repository != images.Lockstep.Name || i.Tag != "" || i.Digest != "sha256:aa" || i.SidecarDigest != "sha256:cc" || values.BIND9Image != images.Servers.String() {
		t.Errorf("the chart installs %+v", values)
	}
}

func TestPackage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lockstep")
	for file, text := range map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: lockstep\nversion: 0.0.0\nappVersion: dev\nkubeVersion: \">=1.33\"\n",
		"templates/a.yaml": "a: {{ .Values.a }}\n",
		".helmignore":      "tests\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name, body, err := Package(dir, "v0.1.0", images, time.Unix(0, 0))
	if err != nil || name != "lockstep-0.1.0.tgz" {
		t.Fatalf("%s, %v", name, err)
	}
	want := map[string]string{
		"lockstep/Chart.yaml":       "apiVersion: v2\nname: lockstep\nversion: 0.1.0\nappVersion: v0.1.0\nkubeVersion: \">=1.33\"\n",
		"lockstep/templates/a.yaml": "a: {{ .Values.a }}\n",
	}
	if diff := cmp.Diff(want, unpack(t, body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChartWithoutVersion(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte("name: lockstep\nversion: 0.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Package(dir, "v0.1.0", images, time.Unix(0, 0)); err == nil {
		t.Error("a chart without appVersion was packaged")
	}
}

func unpack(t *testing.T, body []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b)
	}
}
