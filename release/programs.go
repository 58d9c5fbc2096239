package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-dns/lockstep/release/internal/archive"
	"github.com/lockstep-dns/lockstep/release/internal/build"
	"github.com/lockstep-dns/lockstep/release/internal/krew"
	"github.com/lockstep-dns/lockstep/release/internal/licenses"
	"github.com/lockstep-dns/lockstep/release/internal/sbom"
)

const (
	program = "lockstep"
	sidecar = "lockstep-sidecar"
	plugin  = "kubectl-lockstep"
)

// architectures are those of the images, and of nodes.
var architectures = []string{"amd64", "arm64"}

// allPlatforms are those where people run the plugin.
const allPlatforms = "darwin/amd64,darwin/arm64,linux/amd64,linux/arm64,windows/amd64,windows/arm64"

// makePrograms writes an archive for each program and platform. Servers run on Linux alone; the plugin runs where people are. That of
// sidecars is for their image only.
func (r *release) makePrograms(ctx context.Context) error {
	for _, arch := range architectures {
		target := build.Target{OS: "linux", Arch: arch}
		if _, err := r.makeProgram(ctx, program, target); err != nil {
			return err
		}
		if err := r.builder.Build(ctx, sidecar, target, r.programPath(sidecar, target)); err != nil {
			return err
		}
	}
	var platforms []krew.Platform
	for _, target := range r.targets {
		file, err := r.makeProgram(ctx, plugin, target)
		if err != nil {
			return err
		}
		platforms = append(platforms, krew.Platform{
			OS: target.OS, Arch: target.Arch, SHA256: r.sums[file], Bin: target.Executable(plugin),
			URI: home + "/releases/download/" + r.Version + "/" + file,
		})
	}
	manifest, err := krew.Manifest(r.Version, home, platforms)
	if err != nil {
		return err
	}
	return r.write("krew.yaml", manifest)
}

// makeProgram writes the archive of a program and its bill of materials. It returns the name of the archive.
func (r *release) makeProgram(ctx context.Context, name string, target build.Target) (string, error) {
	if err := r.builder.Build(ctx, name, target, r.programPath(name, target)); err != nil {
		return "", err
	}
	body, bill, err := r.readProgram(name, target)
	if err != nil {
		return "", err
	}
	files, err := r.licenses(ctx, name, target)
	if err != nil {
		return "", err
	}
	files = append(files, archive.File{Path: target.Executable(name), Executable: true, Body: body})
	if name == plugin && target.OS != "windows" {
		const completion = "kubectl_complete-lockstep"
		script, err := os.ReadFile(filepath.Join(r.Root, "cmd", plugin, completion))
		if err != nil {
			return "", err
		}
		files = append(files, archive.File{Path: completion, Executable: true, Body: script})
	}
	base := fmt.Sprintf("%s_%s_%s_%s", name, r.Version, target.OS, target.Arch)
	file := base + ".tar.gz"
	if target.OS == "windows" {
		file = base + ".zip"
	}
	packed, err := archive.Pack(file, files, r.Time)
	if err != nil {
		return "", err
	}
	if err := r.write(file, packed); err != nil {
		return "", err
	}
	return file, r.writeBill(base, bill)
}

func (r *release) programPath(name string, target build.Target) string {
	return filepath.Join(r.work, target.OS+"-"+target.Arch, target.Executable(name))
}

// readProgram returns a program that has been built, and its bill of materials.
func (r *release) readProgram(name string, target build.Target) ([]byte, sbom.Bill, error) {
	body, err := os.ReadFile(r.programPath(name, target))
	if err != nil {
		return nil, sbom.Bill{}, err
	}
	bill, err := sbom.Program(name, r.Version, target.Executable(name), body)
	return body, bill, err
}

// licenses returns the license of Lockstep, and those of all that a program contains.
func (r *release) licenses(ctx context.Context, name string, target build.Target) ([]archive.File, error) {
	own, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	modules, err := r.builder.Modules(ctx, name, target)
	if err != nil {
		return nil, err
	}
	root, version, err := r.builder.GoRoot(ctx)
	if err != nil {
		return nil, err
	}
	modules[version] = root
	others, err := licenses.Collect(modules)
	return []archive.File{{Path: "LICENSE", Body: own}, {Path: "THIRD_PARTY_LICENSES", Body: others}}, err
}
