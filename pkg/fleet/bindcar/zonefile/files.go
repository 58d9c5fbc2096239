package zonefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Suffixes of a zone's files: its content, what named keeps beside it, and our description.
const (
	contentSuffix     = ".zone"
	descriptionSuffix = ".json"
)

var namedSuffixes = []string{"", ".jnl", ".jbk", ".signed", ".signed.jnl"}

// Files are the files of one zone.
type Files struct{ stem string }

// Content is the path of the zone's content.
func (f Files) Content() string { return f.stem + contentSuffix }

func (f Files) description() string { return f.stem + descriptionSuffix }

// Described reports whether the zone has a description, so that it was added at run time.
func (f Files) Described() bool {
	_, err := os.Stat(f.description())
	return err == nil
}

// Exist reports whether there is, or may be, any file of the zone.
func (f Files) Exist() bool {
	return slices.ContainsFunc(f.paths(), func(name string) bool { _, err := os.Lstat(name); return !errors.Is(err, fs.ErrNotExist) })
}

func (f Files) paths() []string {
	paths := []string{f.description()}
	for _, suffix := range namedSuffixes {
		paths = append(paths, f.Content()+suffix)
	}
	return paths
}

// Remove deletes every file of the zone. A journal that was left behind would be applied to a new zone of that name.
func (f Files) Remove() error {
	var problems []error
	for _, name := range f.paths() {
		problems = append(problems, RemoveFile(name))
	}
	return errors.Join(problems...)
}

// RemoveFile deletes a file if it exists.
func RemoveFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a zone's file: %w", err)
	}
	return nil
}

// WriteFile replaces a small file. It is not synced to disk: its loss shows in its absence or its syntax.
func WriteFile(name string, content []byte, mode fs.FileMode) error {
	return replaceFile(name, mode, false, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// replaceFile writes a new file and renames it, so that a reader sees the old or the new content, complete. With durable
// that holds even when the machine loses its power.
func replaceFile(name string, mode fs.FileMode, durable bool, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	buffered := bufio.NewWriterSize(file, 64<<10)
	if err := write(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if durable {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
