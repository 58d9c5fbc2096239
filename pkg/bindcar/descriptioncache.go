package bindcar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// descriptionCache keeps descriptions as their files have them, so that a list of all zones reads only the files that
// are new. The zero value is empty.
type descriptionCache struct {
	mu    sync.Mutex
	known map[string]cachedDescription
}

type cachedDescription struct {
	description
	file fs.FileInfo
}

// all gives the descriptions in dir by their files' stems. One that cannot be read is the zero value.
func (c *descriptionCache) all(dir string) (map[string]description, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing zone files: %w", err)
	}
	known, all := make(map[string]cachedDescription, len(c.known)), make(map[string]description, len(c.known))
	for _, entry := range entries {
		stem, ok := strings.CutSuffix(entry.Name(), suffixDescription)
		if !ok {
			continue
		}
		cached, err := c.current(filepath.Join(dir, entry.Name()), stem, entry)
		switch {
		case errors.Is(err, fs.ErrNotExist) || isGone(err):
			continue // deleted meanwhile
		case err != nil:
			cached.description = description{} // one damaged file must not hide all zones
		}
		known[stem], all[stem] = cached, cached.description
	}
	c.known = known
	return all, nil
}

// current reads a file unless it is the one that was read before: replacing makes another file of it.
func (c *descriptionCache) current(path, stem string, entry fs.DirEntry) (cachedDescription, error) {
	info, err := entry.Info()
	if err != nil {
		return cachedDescription{}, err
	}
	if cached, ok := c.known[stem]; ok && os.SameFile(cached.file, info) && cached.file.ModTime().Equal(info.ModTime()) {
		return cached, nil
	}
	d, err := loadDescription(path)
	return cachedDescription{d, info}, err
}
