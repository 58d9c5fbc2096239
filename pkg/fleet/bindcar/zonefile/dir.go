package zonefile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// Dir is the directory of zone files. It caches descriptions, so that a list of all zones reads only the files that are new,
// and has a lock for each zone. It is safe for concurrent use.
type Dir struct {
	// Path of the directory.
	Path string

	mu     sync.Mutex
	cached map[string]cachedDescription
	// count is the number of descriptions since the directory changed last, at countedAt.
	count     int
	countedAt time.Time

	locksMu sync.Mutex
	locks   map[string]chan struct{}
}

type cachedDescription struct {
	Description
	file fs.FileInfo
}

// Files are the paths of a zone's files.
func (d *Dir) Files(zone string) Files { return Files{filepath.Join(d.Path, fileStem(zone))} }

// KeyFilePrefix is how the paths of a zone's DNSSEC key files begin.
func (d *Dir) KeyFilePrefix(zone string) string {
	return filepath.Join(d.Path, "K"+escapeName(zone, "%%%02X")+".+")
}

// LoadDescription reads the description of a zone. httperror.IsNotFound reports a zone that was not added at run time.
func (d *Dir) LoadDescription(zone string) (Description, error) {
	return readDescription(d.Files(zone).description())
}

// SaveDescription writes the description of a zone.
func (d *Dir) SaveDescription(zone Description) error {
	text, err := json.Marshal(zone)
	if err != nil {
		return err
	}
	if err := WriteFile(d.Files(zone.Name).description(), text, 0o640); err != nil {
		return fmt.Errorf("saving the description of zone %s: %w", zone.Name, err)
	}
	return nil
}

func readDescription(file string) (Description, error) {
	var d Description
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, httperror.New(http.StatusNotFound, "zone not found", "the zone was not added through this API")
	}
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return Description{}, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// LoadDescriptions reads all descriptions by zone. Those that cannot be read are missing and in damaged: one of them must not hide all
// zones.
func (d *Dir) LoadDescriptions() (all map[string]Description, damaged []error, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("listing zone files: %w", err)
	}
	cached := make(map[string]cachedDescription, len(d.cached))
	all = make(map[string]Description, len(d.cached))
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), descriptionSuffix) {
			continue
		}
		current, err := d.loadCached(entry)
		switch {
		case errors.Is(err, fs.ErrNotExist) || httperror.IsNotFound(err):
			continue // deleted meanwhile
		case err != nil:
			damaged = append(damaged, err)
			continue
		}
		cached[entry.Name()], all[current.Name] = current, current.Description
	}
	d.cached = cached
	return all, damaged, nil
}

// clockTick is longer than the time within which two changes of a directory may have the same time.
const clockTick = 100 * time.Millisecond

// CountDescriptions counts descriptions. It lists the directory only after that has changed.
func (d *Dir) CountDescriptions() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, err := os.Open(d.Path)
	if err != nil {
		return 0, fmt.Errorf("counting zone files: %w", err)
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Stat()
	if err != nil {
		return 0, err
	}
	changed := info.ModTime()
	if d.countedAt.Equal(changed) {
		return d.count, nil
	}
	settled := time.Since(changed) > clockTick
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	count := len(slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, descriptionSuffix) }))
	if settled {
		d.count, d.countedAt = count, changed
	}
	return count, nil
}

// loadCached reads a file unless it is the one that was read before: replacing makes another file of it.
func (d *Dir) loadCached(entry fs.DirEntry) (cachedDescription, error) {
	info, err := entry.Info()
	if err != nil {
		return cachedDescription{}, err
	}
	if known, ok := d.cached[entry.Name()]; ok && os.SameFile(known.file, info) && known.file.ModTime().Equal(info.ModTime()) {
		return known, nil
	}
	description, err := readDescription(filepath.Join(d.Path, entry.Name()))
	return cachedDescription{description, info}, err
}

// Lock waits until nobody else changes the zone and returns the function that unlocks it.
func (d *Dir) Lock(ctx context.Context, zone string) (unlock func(), err error) {
	for {
		d.locksMu.Lock()
		held, busy := d.locks[zone]
		if !busy {
			if d.locks == nil {
				d.locks = map[string]chan struct{}{}
			}
			released := make(chan struct{})
			d.locks[zone] = released
			d.locksMu.Unlock()
			return func() {
				d.locksMu.Lock()
				delete(d.locks, zone)
				d.locksMu.Unlock()
				close(released)
			}, nil
		}
		d.locksMu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
