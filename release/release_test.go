package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var (
	twice     = flag.Bool("twice", false, "make the release of HEAD twice, and try what is in it; takes minutes")
	platforms = flag.String("platforms", allPlatforms, "what the plugin is built for, linux/amd64 and linux/arm64 at least")
)

// TestRelease makes the release of HEAD in two clones, in different folders and surroundings, and tries what is in it.
func TestRelease(t *testing.T) {
	if !*twice {
		t.Skip("`make test-release` runs this")
	}
	root, err := findRepository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	one := makeRelease(t, clone(t, root, filepath.Join(dir, "one")), "umask 022", "TZ=UTC", "LC_ALL=C.UTF-8")
	two := makeRelease(t, clone(t, root, filepath.Join(dir, "another", "place")), "umask 077", "TZ=Pacific/Kiritimati", "LC_ALL=C")
	t.Run("Reproducible", func(t *testing.T) { compareFolders(t, one, two) })
	var made struct {
		Version      string
		Images       []string
		BindVersions map[string]string
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(one, "release.json")), &made); err != nil || made.Version != filepath.Base(one) || len(made.Images) != 4 || len(made.BindVersions) != 2 {
		t.Fatalf("release.json: %+v, %v", made, err)
	}
	r := unpacked{dir: one, version: made.Version}
	t.Run("Files", r.testFiles)
	t.Run("Programs", r.testPrograms)
	t.Run("Bills", r.testBills)
	t.Run("Manifests", func(t *testing.T) { r.testManifests(t, made.Images) })
	t.Run("Krew", func(t *testing.T) { r.testKrew(t, filepath.Join(root, "_output", "krew")) })
	for i, name := range []string{"lockstep", "lockstep-sidecar", "lockstep-bind9-9.20", "lockstep-bind9-9.18"} {
		t.Run("Image/"+name, func(t *testing.T) { r.testImage(t, name, made.Images[i]) })
	}
	t.Run("Containerd", func(t *testing.T) { r.testContainerd(t, made.Images[0]) })
	t.Run("Dirty", func(t *testing.T) { testDirty(t, filepath.Join(dir, "one")) })
}

// clone clones the commit that is checked out. Changes that are not committed are not in a release.
func clone(t *testing.T, root, to string) string {
	t.Helper()
	execute(t, root, nil, "git", "clone", "--quiet", "file://"+root, to)
	return to
}

// makeRelease returns the folder of the release that make makes.
func makeRelease(t *testing.T, root, umask string, env ...string) string {
	t.Helper()
	t.Log(lastLine(execute(t, root, env, "bash", "-c", umask+" && make release PLATFORMS="+*platforms)))
	found, err := filepath.Glob(filepath.Join(root, "_output", "release", "v*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("releases in %s: %v, %v", root, found, err)
	}
	return found[0]
}

func testDirty(t *testing.T, root string) {
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "release")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "changes that are not committed") || !strings.Contains(string(out), "M README.md") {
		t.Errorf("error %v:\n%s", err, out)
	}
}

// unpacked is a release in a folder.
type unpacked struct{ dir, version string }

func (r unpacked) path(format string) string {
	return filepath.Join(r.dir, strings.ReplaceAll(format, "VERSION", r.version))
}

// testFiles: the release has the files that docs/releasing.md lists, each of them with a sum.
func (r unpacked) testFiles(t *testing.T) {
	want := []string{
		"checksums.txt", "crds.yaml", "install-enrolled.yaml", "install-ha.yaml", "install.yaml", "krew.yaml", "release-notes.md", "release.json",
		"lockstep-image_VERSION.oci.tar", "lockstep-image_VERSION_linux_amd64.cdx.json", "lockstep-image_VERSION_linux_arm64.cdx.json",
		"lockstep-sidecar-image_VERSION.oci.tar", "lockstep-sidecar-image_VERSION_linux_amd64.cdx.json", "lockstep-sidecar-image_VERSION_linux_arm64.cdx.json",
		"lockstep-bind9-9.20-image_VERSION.oci.tar", "lockstep-bind9-9.20-image_VERSION_linux_amd64.cdx.json", "lockstep-bind9-9.20-image_VERSION_linux_arm64.cdx.json",
		"lockstep-bind9-9.18-image_VERSION.oci.tar", "lockstep-bind9-9.18-image_VERSION_linux_amd64.cdx.json", "lockstep-bind9-9.18-image_VERSION_linux_arm64.cdx.json",
	}
	programs := []string{"lockstep_VERSION_linux_amd64.tar.gz", "lockstep_VERSION_linux_arm64.tar.gz"}
	for platform := range strings.SplitSeq(*platforms, ",") {
		suffix := ".tar.gz"
		if strings.HasPrefix(platform, "windows/") {
			suffix = ".zip"
		}
		programs = append(programs, "kubectl-lockstep_VERSION_"+strings.ReplaceAll(platform, "/", "_")+suffix)
	}
	for _, name := range programs {
		want = append(want, name, strings.TrimSuffix(strings.TrimSuffix(name, ".zip"), ".tar.gz")+".cdx.json")
	}
	want = append(want, "lockstep-"+strings.TrimPrefix(r.version, "v")+".tgz")
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "VERSION", r.version)
	}
	slices.Sort(want)
	var got []string
	for name := range readFolder(t, r.dir) {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out := execute(t, r.dir, nil, "sha256sum", "--check", "--strict", "checksums.txt")
	if ok, files := strings.Count(out, ": OK\n"), len(readFolder(t, r.dir)); ok != files-1 {
		t.Errorf("%d files have a sum, want all of %d but the list", ok, files)
	}
}

// testPrograms unpacks archives as a user does, and runs what is in them: on this processor, and emulated on the other.
func (r unpacked) testPrograms(t *testing.T) {
	for _, arch := range architectures {
		for _, name := range []string{program, plugin} {
			dir := t.TempDir()
			execute(t, dir, nil, "tar", "--extract", "--file", r.path(name+"_VERSION_linux_"+arch+".tar.gz"))
			version := execute(t, dir, nil, emulated(arch, filepath.Join(dir, name), "--version")...)
			if !strings.HasSuffix(version, " version "+r.version+"\n") {
				t.Errorf("%s for %s says that it is %q", name, arch, version)
			}
			if help := execute(t, dir, nil, emulated(arch, filepath.Join(dir, name), "--help")...); !strings.Contains(help, "Available Commands") {
				t.Errorf("%s for %s has the help %q", name, arch, help)
			}
			for file, part := range map[string]string{"LICENSE": "Apache License", "THIRD_PARTY_LICENSES": "---- go1."} {
				if !strings.Contains(string(readFile(t, filepath.Join(dir, file))), part) {
					t.Errorf("%s of %s does not contain %q", file, name, part)
				}
			}
		}
	}
}

// emulated returns the command that runs a program of an architecture.
func emulated(arch string, command ...string) []string {
	if arch == "arm64" {
		return append([]string{"qemu-aarch64-static"}, command...)
	}
	return command
}

// testBills: bills of materials name their subject, and components by package URLs that scanners understand.
func (r unpacked) testBills(t *testing.T) {
	for file, want := range map[string]string{
		"lockstep_VERSION_linux_arm64":                  "pkg:golang/github.com/miekg/dns@v",
		"kubectl-lockstep_VERSION_linux_amd64":          "pkg:golang/k8s.io/client-go@v",
		"lockstep-image_VERSION_linux_amd64":            "pkg:golang/std@1.",
		"lockstep-sidecar-image_VERSION_linux_arm64":    "pkg:golang/github.com/miekg/dns@v",
		"lockstep-bind9-9.20-image_VERSION_linux_arm64": "pkg:deb/debian/libc6@",
		"lockstep-bind9-9.18-image_VERSION_linux_arm64": "pkg:deb/debian/libc6@",
	} {
		var bom cdx.BOM
		body := readFile(t, r.path(file+".cdx.json"))
		if err := cdx.NewBOMDecoder(bytes.NewReader(body), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !slices.ContainsFunc(*bom.Components, func(c cdx.Component) bool { return strings.HasPrefix(c.PackageURL, want) }) {
			t.Errorf("%s has no component %s", file, want)
		}
		if s := bom.Metadata.Component; !strings.Contains(s.Version, r.version) || s.Hashes == nil {
			t.Errorf("the subject of %s is %+v", file, s)
		}
	}
}

func (r unpacked) testManifests(t *testing.T, images []string) {
	for _, name := range []string{"install.yaml", "install-ha.yaml", "install-enrolled.yaml"} {
		text := string(readFile(t, r.path(name)))
		for _, image := range images {
			if !strings.Contains(text, image+"\n") {
				t.Errorf("%s does not name %s", name, image)
			}
		}
	}
}

// testImage validates an image with the library of another project, and runs what is in it.
func (r unpacked) testImage(t *testing.T, name, reference string) {
	dir := t.TempDir()
	execute(t, dir, nil, "tar", "--extract", "--file", r.path(name+"-image_VERSION.oci.tar"))
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	_, digest, _ := strings.Cut(reference, "@")
	if got := manifest.Manifests[0].Digest.String(); got != digest {
		t.Errorf("the layout has the image %s, and the manifests name %s", got, digest)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	parts, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, part := range parts.Manifests {
		found = append(found, part.Platform.String())
		img, err := index.Image(part.Digest)
		if err != nil {
			t.Fatal(err)
		}
		r.runImage(t, name, part.Platform.Architecture, img)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// runImage runs the program of an image among the files of the image alone.
func (r unpacked) runImage(t *testing.T, name, arch string, img v1.Image) {
	t.Helper()
	root := t.TempDir()
	files := mutate.Extract(img)
	defer files.Close()
	extract(t, files, root)
	command, want := filepath.Join(root, "lockstep"), " version "+r.version+"\n"
	args := []string{"--version"}
	release, isBIND := strings.CutPrefix(name, "lockstep-bind9-")
	if isBIND {
		command, args, want = filepath.Join(root, "usr/sbin/named"), []string{"-v"}, "BIND "+release+"."
	}
	var line []string
	switch {
	case arch == "arm64":
		line = append([]string{"qemu-aarch64-static", "-L", root, command}, args...)
	case isBIND:
		library := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
		line = append([]string{filepath.Join(root, "lib64/ld-linux-x86-64.so.2"), "--inhibit-cache", "--library-path", library, command}, args...)
	default:
		line = append([]string{command}, args...)
	}
	if out := execute(t, root, nil, line...); !strings.Contains(out, want) {
		t.Errorf("%s for %s says %q, want %q", name, arch, out, want)
	}
}

func extract(t *testing.T, files io.Reader, root string) {
	t.Helper()
	cmd := exec.Command("tar", "--extract", "--no-same-owner", "--directory", root)
	cmd.Stdin = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// testKrew: krew accepts the manifest for its index, installs the plugin with it, and kubectl finds the plugin. `make krew` builds
// its programs in bin.
func (r unpacked) testKrew(t *testing.T, bin string) {
	manifest := filepath.Join(t.TempDir(), "lockstep.yaml") // krew's index wants the plugin's name
	if err := os.WriteFile(manifest, readFile(t, r.path("krew.yaml")), 0o644); err != nil {
		t.Fatal(err)
	}
	execute(t, bin, nil, filepath.Join(bin, "validate-krew-manifest"), "-manifest", manifest, "-skip-install")
	home := t.TempDir()
	execute(t, bin, []string{"KREW_ROOT=" + home}, filepath.Join(bin, "krew"), "install", "--manifest="+manifest,
		"--archive="+r.path("kubectl-lockstep_VERSION_linux_amd64.tar.gz"))
	path := "PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH")
	commands := []string{"kubectl-lockstep --version"}
	if _, err := exec.LookPath("kubectl"); err == nil {
		commands = append(commands, "kubectl lockstep --version")
	}
	for _, command := range commands {
		if out := execute(t, bin, []string{path}, "bash", "-c", command); out != "kubectl lockstep version "+r.version+"\n" {
			t.Errorf("%s prints %q", command, out)
		}
	}
}

// testContainerd imports an image into the dev cluster's containerd, apart from the cluster's images, and runs it there.
func (r unpacked) testContainerd(t *testing.T, reference string) {
	const socket, namespace = "/run/lockstep-cluster/containerd.sock", "lockstep-release-test"
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the dev cluster does not run")
	}
	ctr := func(args ...string) string {
		t.Helper()
		return execute(t, r.dir, nil, append([]string{"ctr", "--address", socket, "--namespace", namespace}, args...)...)
	}
	name, digest, _ := strings.Cut(reference, "@")
	t.Cleanup(func() {
		for image := range strings.FieldsSeq(ctr("images", "list", "--quiet")) {
			ctr("images", "remove", "--sync", image)
		}
		ctr("namespaces", "remove", namespace)
	})
	ctr("images", "import", "--digests", r.path("lockstep-image_VERSION.oci.tar"))
	if list := ctr("images", "list", "name=="+name); !strings.Contains(list, digest) {
		t.Errorf("containerd has\n%s\nwant %s", list, digest)
	}
	if out := ctr("run", "--rm", "--snapshotter", "native", name, "release-test", "/lockstep", "--version"); out != "lockstep version "+r.version+"\n" {
		t.Errorf("the container prints %q", out)
	}
}

// execute runs a command, which must succeed, and returns its output.
func execute(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, &out, &complaint)
	}
	return out.String()
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func compareFolders(t *testing.T, one, two string) {
	a, b := readFolder(t, one), readFolder(t, two)
	size := 0
	for name, body := range a {
		size += len(body)
		if other, ok := b[name]; !ok || !bytes.Equal(body, other) {
			t.Errorf("%s differs: %d and %d bytes", name, len(body), len(other))
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d and %d files", len(a), len(b))
	}
	if t.Failed() {
		return
	}
	t.Logf("%d files of %.1f MB are equal", len(a), float64(size)/1e6)
}

func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		files[entry.Name()] = readFile(t, filepath.Join(dir, entry.Name()))
	}
	return files
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
