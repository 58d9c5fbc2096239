package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/release/internal/build"
	"github.com/lockstep-dns/lockstep/release/internal/chart"
	"github.com/lockstep-dns/lockstep/release/internal/checkout"
	"github.com/lockstep-dns/lockstep/release/internal/manifest"
	"github.com/lockstep-dns/lockstep/release/internal/notes"
	"github.com/lockstep-dns/lockstep/release/internal/sbom"
)

// home is where the project lives.
const home = "https://github.com/lockstep-dns/lockstep"

type options struct {
	version, registry, out string
	platforms              string // separated by commas
	allowDirty             bool
}

// release is a release that is being made.
type release struct {
	checkout.Checkout

	registry string
	targets  []build.Target // of the plugin
	builder  build.Builder
	work     string // folder of the programs, kept so that Go links only what has changed
	staging  string // folder that becomes final when all of it is there
	final    string
	sums     map[string]string // SHA-256 of each file that has been written, in hexadecimal digits
	// Of the images, for the manifests.
	lockstep, sidecar manifest.Image
	// servers are the images of BIND, versions the versions of Debian's packages in them, by release.
	servers  manifest.Servers
	versions map[string]string
}

func newRelease(ctx context.Context, root string, o options) (*release, error) {
	c, err := checkout.Open(ctx, root, o.version, o.allowDirty)
	if err != nil {
		return nil, err
	}
	targets, err := build.ParseTargets(o.platforms)
	if err != nil {
		return nil, err
	}
	out, err := filepath.Abs(cmp.Or(o.out, filepath.Join(root, "_output", "release")))
	return &release{
		Checkout: c,
		registry: o.registry,
		targets:  targets,
		builder:  build.Builder{Root: root, Version: c.Version},
		work:     filepath.Join(root, "_output", "release", ".programs"),
		staging:  filepath.Join(out, c.Version+".new"),
		final:    filepath.Join(out, c.Version),
		sums:     map[string]string{},
	}, err
}

// make makes all files and puts them where they belong, all or none.
func (r *release) make(ctx context.Context) error {
	begin := time.Now()
	if err := errors.Join(os.RemoveAll(r.staging), os.MkdirAll(r.staging, 0o755)); err != nil {
		return err
	}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"programs", r.makePrograms},
		{"image lockstep", r.makeLockstepImage},
		{"image lockstep-sidecar", r.makeSidecarImage},
		{"images lockstep-bind9", r.makeBINDImages},
		{"manifests", r.makeManifests},
		{"chart", r.makeChart},
		{"notes", r.makeNotes},
		{"checksums", r.writeSums},
	}
	for _, step := range steps {
		from := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("making %s: %w", step.what, err)
		}
		fmt.Printf("release: %s: %.1f s\n", step.what, time.Since(from).Seconds())
	}
	if err := errors.Join(os.RemoveAll(r.final), os.Rename(r.staging, r.final)); err != nil {
		return err
	}
	fmt.Printf("release: %s of commit %s is in %s, made in %.0f s\n", r.Version, r.Commit[:12], r.final, time.Since(begin).Seconds())
	return nil
}

// write writes a file of the release.
func (r *release) write(name string, body []byte) error {
	sum := sha256.Sum256(body)
	r.sums[name] = hex.EncodeToString(sum[:])
	return os.WriteFile(filepath.Join(r.staging, name), body, 0o644)
}

func (r *release) writeBill(name string, bill sbom.Bill) error {
	body, err := bill.Encode(r.Time)
	if err != nil {
		return err
	}
	return r.write(name+".cdx.json", body)
}

// makeManifests renders what kubectl apply takes as it is.
func (r *release) makeManifests(context.Context) error {
	renderer, err := manifest.NewRenderer(r.Root, r.lockstep, r.sidecar, r.servers)
	if err != nil {
		return err
	}
	for file, overlay := range map[string]string{"install.yaml": "default", "install-ha.yaml": "ha", "install-enrolled.yaml": "enrolled"} {
		body, err := renderer.Overlay(overlay)
		if err != nil {
			return err
		}
		if err := r.write(file, body); err != nil {
			return err
		}
	}
	body, err := renderer.Folder("crds")
	if err != nil {
		return err
	}
	return r.write("crds.yaml", body)
}

// makeChart packages the chart, if the repository has one.
func (r *release) makeChart(context.Context) error {
	found, err := filepath.Glob(filepath.Join(r.Root, "charts", "*", "Chart.yaml"))
	if err != nil {
		return err
	}
	for _, file := range found {
		name, body, err := chart.Package(filepath.Dir(file), r.Version, chart.Images{Lockstep: r.lockstep, Sidecar: r.sidecar, Servers: r.servers}, r.Time)
		if err != nil {
			return err
		}
		if err := r.write(name, body); err != nil {
			return err
		}
	}
	return nil
}

// makeNotes writes what has changed, for people, and what the release was made of, for programs.
func (r *release) makeNotes(ctx context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := notes.Extract(string(changelog), r.Version, home+"/blob/"+r.Commit+"/")
	if err != nil {
		return err
	}
	if err := r.write("release-notes.md", []byte(text+r.describeServers())); err != nil {
		return err
	}
	_, golang, err := r.builder.GoRoot(ctx)
	if err != nil {
		return err
	}
	all := []string{r.lockstep.String(), r.sidecar.String()}
	for _, server := range r.servers {
		all = append(all, server.Image.String())
	}
	body, err := json.MarshalIndent(map[string]any{
		"version": r.Version, "commit": r.Commit, "time": r.Time.Format(time.RFC3339), "go": golang,
		"images": all, "bindVersions": r.versions,
	}, "", "  ")
	if err != nil {
		return err
	}
	return r.write("release.json", append(body, '\n'))
}

// describeServers says in the notes which BIND the images have.
func (r *release) describeServers() string {
	var b strings.Builder
	b.WriteString("\n## BIND\n\n| `version` | BIND, as Debian has it | image |\n|---|---|---|\n")
	for i, server := range r.servers {
		suffix := ""
		if i == 0 {
			suffix = ", the default"
		}
		fmt.Fprintf(&b, "| %s%s | %s | `%s:%s` |\n", server.Release, suffix, r.versions[server.Release], server.Image.Name, server.Image.Tag)
	}
	return b.String()
}

// writeSums writes what sha256sum --check reads.
func (r *release) writeSums(context.Context) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&text, "%s  %s\n", r.sums[name], name)
	}
	return r.write("checksums.txt", []byte(text.String()))
}
