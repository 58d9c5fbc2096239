// Package build compiles the programs of a release. What they are depends on the sources and on the version of Go, and on nothing else
// of the machine.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Target is what a program runs on, as Go names it.
type Target struct{ OS, Arch string }

// ParseTargets reads targets such as linux/amd64,windows/arm64.
func ParseTargets(text string) ([]Target, error) {
	var targets []Target
	for item := range strings.SplitSeq(text, ",") {
		system, arch, ok := strings.Cut(item, "/")
		if !ok || system == "" || arch == "" {
			return nil, fmt.Errorf("platform %q: expected an operating system and an architecture, such as linux/amd64", item)
		}
		targets = append(targets, Target{system, arch})
	}
	return targets, nil
}

// Executable returns the file name of a program.
func (t Target) Executable(name string) string {
	if t.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// Builder builds the programs of one version.
type Builder struct {
	Root    string // of the repository
	Version string
}

// Build compiles the package of a command below cmd for the target, to the file.
func (b Builder) Build(ctx context.Context, command string, target Target, file string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X github.com/lockstep-dns/lockstep/pkg/version.release="+b.Version, "-o", file, "./cmd/"+command)
	cmd.Dir = b.Root
	cmd.Env = environment(target)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s for %s/%s: %w:\n%s", command, target.OS, target.Arch, err, out)
	}
	return os.Chmod(file, 0o755)
}

// environment is that of this process, without what would change the programs.
func environment(target Target) []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GOFLAGS", "GOEXPERIMENT", "GOFIPS140", "GOWORK"}, name)
	})
	return append(env, "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOOS="+target.OS, "GOARCH="+target.Arch)
}

// Modules returns the folders with the sources of the modules that the command is made of for the target, by path@version. The main module is not
// among them.
func (b Builder) Modules(ctx context.Context, command string, target Target) (map[string]string, error) {
	const format = `{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}}@{{.Version}} {{.Dir}}{{else}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "./cmd/"+command)
	cmd.Dir = b.Root
	cmd.Env = environment(target)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules of %s: %w", command, err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules[name] = dir
		}
	}
	return modules, nil
}

// GoRoot returns the folder of Go, and its version.
func (b Builder) GoRoot(ctx context.Context) (dir, version string, err error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION")
	cmd.Dir = b.Root
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("asking Go for its version: %w", err)
	}
	dir, version, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return filepath.Clean(dir), version, nil
}
