package manifest

import (
	"errors"
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

var manifestExtensions = []string{".yaml", ".yml", ".json"}

// MaxFile is how many bytes of a file are read: in memory they take more than ten times that. kube-apiserver takes no request
// of more than 3 MiB.
const MaxFile = 64 << 20

// Read reads every object in the named files. A folder stands for all files in it and below that end in .yaml, .yml or
// .json, in the order of their names, without those whose name begins with a dot; "-" for standard input. Documents of
// folders that are no Kubernetes objects are passed over, lists are taken apart. What kubectl cannot read is a Fault; an error is one of I/O, or a
// file of more than MaxFile bytes.
func Read(stdin io.Reader, names ...string) ([]Object, []Fault, error) {
	var objects []Object
	var faults []Fault
	for _, name := range names {
		if name == Stdin {
			text, err := readLimited(stdin, MaxFile)
			if err != nil {
				return nil, nil, fmt.Errorf("reading standard input: %w", err)
			}
			found, fault := parse("<stdin>", text, true)
			objects, faults = append(objects, found...), append(faults, fault...)
			continue
		}
		files, err := listFiles(name)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			text, err := readManifest(file)
			if err != nil {
				return nil, nil, fmt.Errorf("reading manifests: %w", err)
			}
			found, fault := parse(file, text, file == name)
			objects, faults = append(objects, found...), append(faults, fault...)
		}
	}
	return objects, faults, nil
}

func readManifest(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := readLimited(file, MaxFile)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func readLimited(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, fmt.Errorf("more than %d bytes: split it", limit)
	}
	return text, err
}

// listFiles lists the manifests of a folder, or the file itself whatever its name and kind. In folders, pipes and devices are passed
// over, and links to folders are not followed.
func listFiles(name string) ([]string, error) {
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
		case !hidden && slices.Contains(manifestExtensions, strings.ToLower(filepath.Ext(path))):
			if info, err := os.Stat(path); err != nil {
				return err
			} else if info.Mode().IsRegular() {
				files = append(files, path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing manifests: %w", err)
	}
	return files, nil
}
