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
	path  string
	root  *os.Root
	files *openFiles
}

func openIncludeFolder(name string, files *openFiles) (*includeFolder, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("--include-from: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("--include-from: %w", err)
	}
	return &includeFolder{path, root, files}, nil
}

// Open implements fs.FS for the parser. A relative name is relative to the folder, as BIND's are to its working directory; a
// complete one comes without its first slash.
func (f *includeFolder) Open(name string) (fs.File, error) {
	included := name
	text, err := f.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if below, inside := strings.CutPrefix("/"+name, f.path+"/"); inside {
			name = below
			text, err = f.readFile(below)
		}
	}
	if err != nil {
		return nil, err
	}
	r := newLineReader(filepath.Join(f.path, name), text)
	r.included = included
	f.files.push(r)
	return r, nil
}

func (f *includeFolder) readFile(name string) ([]byte, error) {
	file, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readLimited(file, name, f.files.limit)
}
