package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// architectures are the same image for two.
func architectures() []Image {
	one, two := sample(), sample()
	for _, img := range []*Image{&one, &two} {
		img.Compress, img.Created = true, time.Date(2026, 11, 24, 12, 0, 0, 0, time.FixedZone("", 7200))
	}
	two.Arch = "arm64"
	two.Files[0].Body = []byte("other program")
	return []Image{one, two}
}

func TestWriteIndex(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sample.tar")
	digests, err := WriteIndex(file, architectures()...)
	if err != nil {
		t.Fatal(err)
	}
	blobs := map[string][]byte{}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	each(t, b, func(h *tar.Header, body []byte) { blobs[h.Name] = body })

	var top, index imageIndex
	parse(t, blobs["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Digest != digests.Index || top.Manifests[0].MediaType != mediaIndex {
		t.Fatalf("the layout holds %+v, want the index %s", top.Manifests, digests.Index)
	}
	want := map[string]string{annotationName: "docker.io/library/sample:1", annotationTag: "1"}
	if diff := cmp.Diff(want, top.Manifests[0].Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parse(t, blob(blobs, digests.Index), &index)
	for _, m := range index.Manifests {
		if m.Platform == nil || m.Platform.OS != "linux" || digests.Manifests[m.Platform.Architecture] != m.Digest {
			t.Errorf("manifest %+v of platform %+v, want one of %v", m, m.Platform, digests.Manifests)
		}
		checkImage(t, blobs, m)
	}
	if len(index.Manifests) != 2 {
		t.Errorf("%d architectures, want 2", len(index.Manifests))
	}
}

// checkImage checks that the configuration describes the layer as it is without compression.
func checkImage(t *testing.T, blobs map[string][]byte, m contentDescriptor) {
	t.Helper()
	var manifest imageManifest
	parse(t, blob(blobs, m.Digest), &manifest)
	var config struct {
		Created, Architecture string
		RootFS                struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	parse(t, blob(blobs, manifest.Config.Digest), &config)
	if config.Architecture != m.Platform.Architecture || config.Created != "2026-11-24T10:00:00Z" {
		t.Errorf("configuration %+v of %s", config, m.Platform.Architecture)
	}
	z, err := gzip.NewReader(bytes.NewReader(blob(blobs, manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); len(config.RootFS.DiffIDs) != 1 || config.RootFS.DiffIDs[0] != got {
		t.Errorf("diff IDs %v, want %s", config.RootFS.DiffIDs, got)
	}
}

func TestIndexOfDifferentImages(t *testing.T) {
	other := sample()
	other.Name, other.Arch = "docker.io/library/other:1", "arm64"
	for name, images := range map[string][]Image{"none": nil, "one architecture twice": {sample(), sample()}, "two names": {sample(), other}} {
		if _, err := WriteIndex(filepath.Join(t.TempDir(), "x.tar"), images...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func blob(blobs map[string][]byte, digest string) []byte {
	return blobs["blobs/sha256/"+digest[len("sha256:"):]]
}

func parse(t *testing.T, body []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
}
