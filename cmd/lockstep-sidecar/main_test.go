package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// own begins the paths of our packages.
const own = "github.com/lockstep-dns/lockstep/"

// foreign are packages that the program does without, and all below them: servers, clients and kinds of Kubernetes.
var foreign = []string{
	"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", own + "pkg/apis", own + "pkg/kube",
}

// TestImports: the program imports none of what makes the other one large.
func TestImports(t *testing.T) {
	imported := strings.Fields(goCommand(t, "list", "-deps", "."))
	if !slices.Contains(imported, own+"pkg/fleet/bindcar/sidecar") {
		t.Fatalf("go list has no sidecar among %d packages", len(imported))
	}
	for _, folder := range foreign {
		if i := slices.IndexFunc(imported, func(p string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }); i >= 0 {
			t.Errorf("it imports %s", imported[i])
		}
	}
}

// maxSize bounds the program as it is in the image, in bytes.
const maxSize = 20_000_000

// TestSize: the program is as small as what runs in every BIND pod has to be.
func TestSize(t *testing.T) {
	info, err := os.Stat(build(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("it has %d bytes, more than %d", info.Size(), maxSize)
	}
}

// TestPods: the program has the commands and flags that BIND pods run it with, under the name that it has in the image.
func TestPods(t *testing.T) {
	w := named.Workload{Instance: &v1beta1.Bind9Instance{}}
	w.Instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{Port: 8081, LogLevel: "debug"}
	set, err := w.StatefulSet()
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	pod := set.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		words := slices.Concat(c.Command, c.Args)
		if words[0] != "/lockstep" {
			continue
		}
		cmd, flags, err := newCommand().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(flags)
		}
		if err != nil {
			t.Errorf("%s: %v", strings.Join(words, " "), err)
		}
		ran[cmd.CommandPath()] = true
	}
	if len(ran) != 2 || !ran["lockstep bindcar init"] || !ran["lockstep bindcar"] {
		t.Errorf("pods run %v", ran)
	}
}

// build builds the program as the image has it.
func build(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "lockstep-sidecar")
	goCommand(t, "build", "-ldflags=-s -w", "-o", program, ".")
	return program
}

// goCommand returns what go prints; it builds as `make build` does.
func goCommand(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false -trimpath", "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
