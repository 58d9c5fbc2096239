package debian

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Package is a package that apt can download.
type Package struct {
	Name   string // bind9
	File   string // bind9_1%3a9.18.49-1~deb12u3_amd64.deb
	SHA256 string // of the file, in hexadecimal digits
}

// Version returns the package's version, with an epoch if it has one.
func (p Package) Version() string {
	_, rest, _ := strings.Cut(p.File, "_")
	version, _, _ := strings.Cut(rest, "_")
	return strings.ReplaceAll(version, "%3a", ":")
}

// Closure returns the roots and the libraries that they need, with what those
// need, sorted by name.
func (r Repository) Closure(ctx context.Context, roots []string) ([]Package, error) {
	known, level := map[string]bool{}, roots
	for len(level) > 0 {
		for _, name := range level {
			known[name] = true
		}
		out, err := runCommand(ctx, "", "apt-cache", r.options("depends", "--important", level...)...)
		if err != nil {
			return nil, err
		}
		level = nil
		for _, name := range parseLibraries(out) {
			if !known[name] && !slices.Contains(level, name) {
				level = append(level, name)
			}
		}
	}
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return r.locatePackages(ctx, names)
}

// parseLibraries reads what apt-cache depends prints and returns the packages of
// shared libraries in it.
func parseLibraries(depends string) []string {
	var names []string
	for line := range strings.Lines(depends) {
		kind, name, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || !strings.HasSuffix(kind, "Depends") {
			continue
		}
		if isLibrary(name) {
			names = append(names, name)
		}
	}
	return names
}

// isLibrary recognizes packages of shared libraries by their names. That of GCC
// holds the license of its libraries' packages.
func isLibrary(name string) bool {
	return strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "zlib") ||
		strings.HasPrefix(name, "gcc-") && strings.HasSuffix(name, "-base")
}

// locatePackages asks apt which file is each package's.
func (r Repository) locatePackages(ctx context.Context, names []string) ([]Package, error) {
	out, err := runCommand(ctx, "", "apt-get", r.options("download", "--print-uris", names...)...)
	if err != nil {
		return nil, err
	}
	packages, err := parseURIs(out)
	if err != nil {
		return nil, err
	}
	if len(packages) != len(names) {
		return nil, fmt.Errorf("apt-get knows %d of the packages %v", len(packages), names)
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages, nil
}

// parseURIs reads lines of the form 'URL' FILE SIZE SHA256:SUM.
func parseURIs(out string) ([]Package, error) {
	var packages []Package
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 4 || !strings.HasPrefix(f[3], "SHA256:") {
			return nil, fmt.Errorf("apt-get printed %q where the place of a package was expected", line)
		}
		name, _, _ := strings.Cut(f[1], "_")
		packages = append(packages, Package{Name: name, File: f[1], SHA256: strings.TrimPrefix(f[3], "SHA256:")})
	}
	return packages, nil
}

func runCommand(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
