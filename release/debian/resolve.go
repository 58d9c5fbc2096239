package debian

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// resolvedPackages is what Closure found, and in which lists.
type resolvedPackages struct {
	Lists    string
	Roots    []string
	Packages []Package
}

// Resolve is Closure, remembered in the folder for as long as apt's lists stay
// the same, because asking apt takes seconds.
func (r Repository) Resolve(ctx context.Context, roots []string) ([]Package, error) {
	file := filepath.Join(r.Dir, r.foreignSuite(), r.Arch, "resolved.json")
	lists, err := fingerprintFolder(r.lists())
	if err != nil {
		return nil, err
	}
	var old resolvedPackages
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &old) == nil &&
		old.Lists == lists && slices.Equal(old.Roots, roots) {
		return old.Packages, nil
	}
	packages, err := r.Closure(ctx, roots)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(resolvedPackages{Lists: lists, Roots: roots, Packages: packages}, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return packages, os.WriteFile(file, b, 0o644)
}

// Update renews apt's lists.
func (r Repository) Update(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(r.lists(), "partial"), 0o755); err != nil {
		return err
	}
	if err := r.writeSources(); err != nil {
		return err
	}
	// By default apt-get update succeeds even if a mirror is unreachable.
	_, err := runCommand(ctx, "", "apt-get", r.options("update", "-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "APT::Update::Error-Mode=any")...)
	return err
}

// fingerprintFolder changes when a file of the folder does.
func fingerprintFolder(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		if info.Mode().IsRegular() && e.Name() != "lock" {
			fmt.Fprintln(h, e.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
