package zoneimport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// includeFolder is what $INCLUDE may read: files in one folder, links that lead out of it excepted.
type includeFolder struct {
	// path is absolute.
	path string
	root *os.Root
	// room is how many bytes may still be read.
	room int64
}

func openIncludeFolder(name string, room int64) (*includeFolder, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("--include-from: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("--include-from: %w", err)
	}
	return &includeFolder{path, root, room}, nil
}

// open reads a file. A relative name is relative to the folder, as BIND's are to its working directory. A complete one begins with
// the folder, or is that of a BIND whose root is the folder.
func (f *includeFolder) open(name string) (path, text string, err error) {
	if filepath.IsAbs(name) {
		name = filepath.Clean(name)
		if below, inside := strings.CutPrefix(name, strings.TrimSuffix(f.path, "/")+"/"); inside {
			name = below
		}
		name = strings.TrimPrefix(name, "/")
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("there is no such file in %s, which is what --include-from lets it read", f.path)
	}
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	if text, err = readLimited(file, "the zone with what it includes", f.room); err != nil {
		return "", "", err
	}
	f.room -= int64(len(text))
	return filepath.Join(f.path, name), text, nil
}
