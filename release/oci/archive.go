package oci

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Annotations of the index.
const (
	// annotationName is what containerd calls the image when it imports it.
	annotationName   = "io.containerd.image.name"
	annotationTag    = "org.opencontainers.image.ref.name"
	annotationInputs = "lockstep.inputs"
)

// Write writes the image's archive, which replaces the file as a whole. It
// reports whether the file has changed.
func Write(file string, img Image) (changed bool, err error) {
	layer, config, man, err := img.makeBlobs()
	if err != nil {
		return false, err
	}
	if old, ok, err := Inspect(file); err == nil && ok &&
		old == (Summary{Name: img.Name, Digest: man.Digest, Inputs: img.Inputs}) {
		return false, nil
	}
	err = replaceFile(file, func(w io.Writer) error { return img.writeArchive(w, layer, config, man) })
	if err != nil {
		return false, fmt.Errorf("writing image %s: %w", img.Name, err)
	}
	return true, nil
}

// replaceFile writes a file that appears only when it is complete.
func replaceFile(file string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// writeArchive writes an OCI image layout with the manifest.json that docker load
// reads beside it. The index comes first, for Inspect.
func (img Image) writeArchive(w io.Writer, layer, config, man contentBlob) error {
	head := man.contentDescriptor
	head.Annotations = map[string]string{annotationName: img.Name, annotationTag: referenceTag(img.Name)}
	if img.Inputs != "" {
		head.Annotations[annotationInputs] = img.Inputs
	}
	short := strings.TrimPrefix(img.Name, "docker.io/library/")
	out := &archiveWriter{w: tar.NewWriter(w)}
	out.writeLayout(head)
	out.writeJSON("manifest.json", []map[string]any{
		{"Config": config.blobPath(), "RepoTags": []string{short}, "Layers": []string{layer.blobPath()}},
	})
	for _, b := range []contentBlob{man, config, layer} {
		out.writeFile(b.blobPath(), b.body)
	}
	return errors.Join(out.err, out.w.Close())
}

func referenceTag(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// archiveWriter is a tar writer that keeps its first error.
type archiveWriter struct {
	w   *tar.Writer
	err error
}

// writeLayout writes the files that an image layout begins with.
func (a *archiveWriter) writeLayout(head contentDescriptor) {
	a.writeJSON("index.json", newIndex(head))
	a.writeJSON("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
}

func (a *archiveWriter) writeJSON(name string, v any) {
	b, err := json.Marshal(v)
	if a.err == nil {
		a.err = err
	}
	a.writeFile(name, b)
}

func (a *archiveWriter) writeFile(name string, body []byte) {
	if a.err != nil {
		return
	}
	if a.err = a.w.WriteHeader((File{Path: name, Body: body}).tarHeader()); a.err == nil {
		_, a.err = a.w.Write(body)
	}
}

// Summary is what an archive says of the image in it.
type Summary struct {
	Name   string // full reference
	Digest string // of its manifest
	Inputs string // as given when it was made
}

// Inspect reads the summary of an archive that Write wrote, and whether there
// is such a file.
func Inspect(file string) (Summary, bool, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Summary{}, false, nil
	}
	if err != nil {
		return Summary{}, false, err
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if err != nil {
			return Summary{}, false, fmt.Errorf("looking for the index of image archive %s: %w", file, err)
		}
		if h.Name == "index.json" {
			return summarizeArchive(file, r)
		}
	}
}

func summarizeArchive(file string, r io.Reader) (Summary, bool, error) {
	var i imageIndex
	if err := json.NewDecoder(r).Decode(&i); err != nil {
		return Summary{}, false, fmt.Errorf("reading the index of image archive %s: %w", file, err)
	}
	if len(i.Manifests) != 1 {
		return Summary{}, false, fmt.Errorf("image archive %s holds %d images, want 1", file, len(i.Manifests))
	}
	m := i.Manifests[0]
	return Summary{Name: m.Annotations[annotationName], Digest: m.Digest, Inputs: m.Annotations[annotationInputs]}, true, nil
}
