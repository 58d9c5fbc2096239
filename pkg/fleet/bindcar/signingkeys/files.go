package signingkeys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
)

// keyFiles are the files of a zone's keys as entries of a Secret, which take no "+": "013-12345.private" is named's
// "Kexample.com.+013+12345.private". The state files are among them: without these named would restart the timing of a key
// roll-over.
type keyFiles map[string][]byte

var keyEntry = regexp.MustCompile(`^([0-9]{3})-([0-9]{5})\.(key|private|state)$`)

// readKeyFiles reads the key files of a zone; prefix is how their paths begin.
func readKeyFiles(prefix string) (keyFiles, error) {
	paths, err := filepath.Glob(prefix + "[0-9][0-9][0-9]+*")
	if err != nil {
		return nil, err
	}
	files := keyFiles{}
	for _, path := range paths {
		entry := strings.Replace(strings.TrimPrefix(path, prefix), "+", "-", 1)
		if !keyEntry.MatchString(entry) {
			continue
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a key: %w", err)
		}
		files[entry] = content
	}
	return files, nil
}

// writeTo replaces the key files of a zone.
func (k keyFiles) writeTo(prefix string) error {
	present, err := readKeyFiles(prefix)
	if err != nil {
		return err
	}
	path := func(entry string) string { return prefix + strings.Replace(entry, "-", "+", 1) }
	for entry := range present {
		if !k.has(entry) {
			if err := zonefile.RemoveFile(path(entry)); err != nil {
				return err
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(k)) {
		if err := zonefile.WriteFile(path(entry), k[entry], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// isComplete reports whether there is a key with its private half and its state, and no file is empty, as after a loss of power or on a
// full disk: an empty one must not take the place of a saved one.
func (k keyFiles) isComplete() bool {
	found := false
	for entry, content := range k {
		if len(content) == 0 {
			return false
		}
		stem, private := strings.CutSuffix(entry, ".private")
		found = found || private && k.has(stem+".key") && k.has(stem+".state")
	}
	return found
}

func (k keyFiles) has(entry string) bool {
	_, ok := k[entry]
	return ok
}

func (k keyFiles) equal(o keyFiles) bool { return maps.EqualFunc(k, o, bytes.Equal) }

// onlyKeys leaves the entries that are key files: a Secret may have others.
func onlyKeys(entries map[string][]byte) keyFiles {
	files := maps.Clone(entries)
	maps.DeleteFunc(files, func(entry string, _ []byte) bool { return !keyEntry.MatchString(entry) })
	return files
}
