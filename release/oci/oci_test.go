package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sample() Image {
	return Image{
		Name: "docker.io/library/sample:1", Arch: "amd64", Inputs: "abc",
		Files: []File{
			{Path: "usr/bin/x", Mode: 0o755, Body: []byte("program")},
			{Path: "bin", Link: "usr/bin"},
			{Path: "var/x", Dir: true, UID: 7, GID: 8},
		},
		Config: Config{User: "1:1", Entrypoint: []string{"/usr/bin/x"}},
	}
}

func TestWriteAndInspect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out", "sample.tar")
	if _, ok, err := Inspect(file); ok || err != nil {
		t.Fatalf("Inspect of no file: %v, %v", ok, err)
	}
	changed, err := Write(file, sample())
	if err != nil || !changed {
		t.Fatalf("Write: %v, %v", changed, err)
	}
	got, ok, err := Inspect(file)
	if err != nil || !ok || got.Name != sample().Name || got.Inputs != "abc" || !strings.HasPrefix(got.Digest, "sha256:") {
		t.Errorf("Inspect: %+v, %v, %v", got, ok, err)
	}
	if changed, err := Write(file, sample()); err != nil || changed {
		t.Errorf("writing the same again: changed %v, %v", changed, err)
	}
	other := sample()
	other.Files[0].Body = []byte("other")
	if changed, err := Write(file, other); err != nil || !changed {
		t.Errorf("writing another: changed %v, %v", changed, err)
	}
}

func TestArchiveIsAddressedByContent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sample.tar")
	if _, err := Write(file, sample()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	each(t, b, func(h *tar.Header, body []byte) {
		names = append(names, h.Name)
		if sum, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok && sum != fmt.Sprintf("%x", sha256.Sum256(body)) {
			t.Errorf("%s holds something else", h.Name)
		}
	})
	for _, want := range []string{"index.json", "oci-layout", "manifest.json"} {
		if !slices.Contains(names, want) {
			t.Errorf("the archive has no %s: %v", want, names)
		}
	}
}

func TestLayerHasParentsFirst(t *testing.T) {
	body, err := layerTar(sample().Files)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	each(t, body, func(h *tar.Header, _ []byte) {
		got = append(got, fmt.Sprintf("%s %o %d:%d %s", h.Name, h.Mode, h.Uid, h.Gid, h.Linkname))
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
	})
	want := []string{"bin 777 0:0 usr/bin", "usr/ 755 0:0 ", "usr/bin/ 755 0:0 ", "usr/bin/x 755 0:0 ", "var/ 755 0:0 ", "var/x/ 755 7:8 "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func each(t *testing.T, archive []byte, f func(*tar.Header, []byte)) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		f(h, body)
	}
}
