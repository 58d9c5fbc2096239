package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

var at = time.Date(2026, 11, 24, 10, 0, 0, 0, time.FixedZone("far", 14*3600))

func files() []File {
	return []File{{Path: "program", Executable: true, Body: []byte("p")}, {Path: "LICENSE", Body: []byte("free")}}
}

func TestPackTar(t *testing.T) {
	b, err := Pack("x.tar.gz", files(), at)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d %s %s", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.UTC().Format(time.RFC3339), body))
	}
	want := []string{"LICENSE 644 0:0 2026-11-23T20:00:00Z free", "program 755 0:0 2026-11-23T20:00:00Z p"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestPackZip(t *testing.T) {
	b, err := Pack("x.zip", files(), at)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.File {
		got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.Mode(), f.Modified.UTC().Format(time.RFC3339)))
	}
	want := []string{"LICENSE -rw-r--r-- 2026-11-23T20:00:00Z", "program -rwxr-xr-x 2026-11-23T20:00:00Z"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestPackIsReproducible: neither the order of the files nor the time zone of the time matters.
func TestPackIsReproducible(t *testing.T) {
	for _, name := range []string{"x.tar.gz", "x.zip"} {
		one, err := Pack(name, files(), at)
		if err != nil {
			t.Fatal(err)
		}
		turned := files()
		slices.Reverse(turned)
		two, err := Pack(name, turned, at.UTC())
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s differs, error %v", name, err)
		}
	}
}
