package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Record is what a pid file holds.
type Record struct {
	Identity
	// Fingerprint is that of the Spec the process was started with, so that a
	// changed configuration is noticed.
	Fingerprint string `json:"fingerprint"`
}

// Load reads the record of the named process, and whether there is one.
func Load(dir, name string) (Record, bool, error) {
	b, err := os.ReadFile(pidFile(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, err
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w; remove it if no such process runs", pidFile(dir, name), err)
	}
	return r, true, nil
}

// Names lists the processes that have a record in dir.
func Names(dir string) ([]string, error) {
	files, err := filepath.Glob(pidFile(dir, "*"))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(filepath.Base(f), ".pid")
	}
	return names, nil
}

func saveRecord(dir, name string, r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := pidFile(dir, name) + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, pidFile(dir, name))
}

func pidFile(dir, name string) string { return filepath.Join(dir, name+".pid") }
