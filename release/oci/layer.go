package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"path"
	"slices"
	"time"
)

// File is a file, a link or a folder of the root file system.
type File struct {
	Path     string // without a leading slash
	Mode     int64  // permission bits; the default is 0755 for a folder and 0644 for a file
	UID, GID int
	Body     []byte
	Link     string // the target, if it is a symbolic link
	Dir      bool
}

// layerTar packs the files in the order of their paths, after the folders that
// hold them.
func layerTar(files []File) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range withParents(files) {
		if err := w.WriteHeader(f.tarHeader()); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Body); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// compress is gzip's, without a name or a time.
func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(body)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// withParents adds the folders that are not among the files, and sorts.
func withParents(files []File) []File {
	all := map[string]File{}
	for _, f := range files {
		all[f.Path] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = File{Path: dir, Dir: true}
			}
		}
	}
	sorted := make([]File, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return sorted
}

func (f File) tarHeader() *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Path, Mode: cmp.Or(f.Mode, 0o644), Uid: f.UID, Gid: f.GID,
		Size: int64(len(f.Body)), ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX,
	}
	switch {
	case f.Dir:
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, f.Path+"/", cmp.Or(f.Mode, 0o755)
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	}
	return h
}
