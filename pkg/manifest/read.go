package manifest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

var extensions = []string{".yaml", ".yml", ".json"}

// Read reads every object in the named files. A folder stands for all files in it and below that end in .yaml, .yml or
// .json, in the order of their names, without those whose name begins with a dot; "-" for standard input. Documents that
// are no Kubernetes objects are passed over, lists are taken apart. What is no YAML is a Fault; an error is one of I/O.
func Read(stdin io.Reader, names ...string) ([]Object, []Fault, error) {
	var objects []Object
	var faults []Fault
	for _, name := range names {
		if name == Stdin {
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, nil, fmt.Errorf("reading standard input: %w", err)
			}
			found, fault := Parse("<stdin>", text)
			objects, faults = append(objects, found...), append(faults, fault...)
			continue
		}
		files, err := filesOf(name)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, nil, fmt.Errorf("reading manifests: %w", err)
			}
			found, fault := Parse(file, text)
			objects, faults = append(objects, found...), append(faults, fault...)
		}
	}
	return objects, faults, nil
}

// filesOf lists the manifests of a folder, or the file itself whatever its name.
func filesOf(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("finding manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != name && strings.HasPrefix(entry.Name(), ".")
		switch {
		case hidden && entry.IsDir():
			return fs.SkipDir
		case !hidden && !entry.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing manifests: %w", err)
	}
	return files, nil
}
