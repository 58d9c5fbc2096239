// Package licenses collects the licenses of the modules that a program is made of. Whoever passes the program on has to pass them on.
package licenses

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?$`)

// Collect returns the licenses of modules as one text, sorted by module. The folders of their sources are given by path@version. A module
// without a license is an error: nothing allows passing it on.
func Collect(modules map[string]string) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString("This program contains the following modules.\n")
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		entries, err := os.ReadDir(modules[module])
		if err != nil {
			return nil, fmt.Errorf("reading the license of %s: %w", module, err)
		}
		found := false
		for _, entry := range entries {
			if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
				continue
			}
			body, err := os.ReadFile(filepath.Join(modules[module], entry.Name()))
			if err != nil {
				return nil, fmt.Errorf("reading the license of %s: %w", module, err)
			}
			found = true
			fmt.Fprintf(&text, "\n---- %s: %s\n\n%s\n", module, entry.Name(), bytes.TrimSpace(body))
		}
		if !found {
			return nil, fmt.Errorf("module %s has no license in %s", module, modules[module])
		}
	}
	return text.Bytes(), nil
}
