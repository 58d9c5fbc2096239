package bindcar

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Suffixes of a zone's files: its content, what named keeps beside it, and our description.
const (
	suffixZone        = ".zone"
	suffixDescription = ".json"
)

var namedSuffixes = []string{"", ".jnl", ".jbk", ".signed", ".signed.jnl"}

// zoneFiles are the files of one zone.
type zoneFiles struct{ stem string }

func (s *server) files(zone string) zoneFiles {
	return zoneFiles{filepath.Join(s.options.ZonesDir, fileStem(zone))}
}

func (f zoneFiles) zone() string        { return f.stem + suffixZone }
func (f zoneFiles) description() string { return f.stem + suffixDescription }

// any tells whether there is a file of the zone, or may be.
func (f zoneFiles) any() bool {
	for _, name := range append([]string{f.description()}, f.contents()...) {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

func (f zoneFiles) contents() []string {
	names := make([]string, len(namedSuffixes))
	for i, suffix := range namedSuffixes {
		names[i] = f.zone() + suffix
	}
	return names
}

// remove deletes every file of the zone. A journal that was left behind would be applied to a new zone of that name.
func (f zoneFiles) remove() error {
	problems := []error{removeFile(f.description())}
	for _, name := range f.contents() {
		problems = append(problems, removeFile(name))
	}
	return errors.Join(problems...)
}

func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a zone's file: %w", err)
	}
	return nil
}

// writeFile replaces a small file that a lost one can be told from by its absence or its syntax.
func writeFile(name string, content []byte) error {
	return replaceFile(name, false, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// replaceFile writes a file beside name and renames it, so that a reader sees the old or the new content, complete. With
// durable that holds even when the machine loses its power.
func replaceFile(name string, durable bool, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640) //nolint:gosec // our own directories
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
