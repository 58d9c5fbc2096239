package guides

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/docs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

const (
	// stepLimit is for a step, which mostly has a shorter one of its own.
	stepLimit = kube.Start
	// settleLimit is for what a step only reads to be as the page shows it: a reader types more slowly than this.
	settleLimit = kube.Answer
)

// TestGuides runs what each page of docs/guides has a reader type, in this order.
func TestGuides(t *testing.T) {
	kube.Isolated(t)
	t.Cleanup(func() { kube.Reinstall(t) }) // A page installs another overlay than the tests do.
	for _, d := range docs.Read(t) {
		if filepath.Dir(d.Path) != "docs/guides" || !slices.ContainsFunc(d.Blocks, docs.Block.Runs) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(d.Path), ".md"), func(t *testing.T) {
			kube.Isolated(t)
			runPage(t, d.Blocks, newShell(t, kube.Root(t)))
		})
	}
}

// runPage runs the blocks of a page. Those that are files are written; namespaces that it makes are deleted.
func runPage(t *testing.T, blocks []docs.Block, s *shell) {
	t.Helper()
	for _, b := range blocks {
		if file := b.File(); file != "" {
			if _, _, err := s.run("mkdir -p $(dirname "+file+"); cat >"+file+" <<'END-OF-FILE'\n"+b.Text+"END-OF-FILE", stepLimit); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.Text, "kind: ZoneGrant") || strings.Contains(b.Text, "kind: Bind9GlobalCluster") { // They are in no namespace.
				t.Cleanup(func() { _, _ = kube.TryKubectl(t, b.Text, "delete", "-f", "-", "--ignore-not-found", "--wait=false") })
			}
		}
		if !b.Runs() {
			continue
		}
		for _, step := range b.Steps() {
			deleteLater(t, step.Text)
			runStep(t, b, step, s)
		}
	}
}

// runStep fails the test if a step fails, or does not print what the page shows. What only reads is repeated for a while.
func runStep(t *testing.T, b docs.Block, step docs.Step, s *shell) {
	t.Helper()
	began := time.Now()
	for {
		output, code, err := s.run(step.Text, stepLimit)
		if err != nil {
			t.Fatalf("%s:%d: %s: %v\n%s", b.Document, step.Line, step.Text, err, strings.Join(output, "\n"))
		}
		line := missing(step.Output, output)
		if line == "" && (code == 0 || failureIsShown(step)) {
			t.Logf("%s:%d: %s (%s)", b.Document, step.Line, step.Text, time.Since(began).Round(time.Millisecond))
			return
		}
		if !onlyReads(step.Text) || time.Since(began) > settleLimit.Duration() {
			t.Fatalf("%s:%d: %s: exit code %d, without %q in\n%s", b.Document, step.Line, step.Text, code, line, strings.Join(output, "\n"))
		}
		time.Sleep(time.Second)
	}
}

// failureIsShown reports whether the page shows that the step fails.
func failureIsShown(step docs.Step) bool {
	return slices.ContainsFunc(step.Output, func(line string) bool {
		return strings.HasPrefix(line, "Error") || strings.HasPrefix(line, "error:") || strings.Contains(line, " is invalid: ")
	})
}

// onlyReads reports whether a step may be repeated.
func onlyReads(text string) bool {
	return slices.ContainsFunc([]string{"kubectl get ", "kubectl describe ", "kubectl lockstep ", "dig "}, func(prefix string) bool {
		return strings.HasPrefix(text, prefix)
	}) || strings.Contains(text, " get ") && strings.HasPrefix(text, "kubectl -n ")
}

// deleteLater deletes the namespaces that a step creates after the test, with the rights with which the step does.
func deleteLater(t *testing.T, step string) {
	t.Helper()
	for line := range strings.Lines(step) {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "kubectl create namespace ")
		if !found {
			continue
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), kube.Settle.Duration())
			defer cancel()
			if out, err := exec.CommandContext(ctx, "kubectl", "delete", "namespace", name, "--ignore-not-found").CombinedOutput(); err != nil {
				t.Errorf("deleting namespace %s: %v: %s", name, err, out)
			}
		})
	}
}

// TestKubectl: kubectl has each subcommand and each flag that the documentation uses.
func TestKubectl(t *testing.T) {
	kube.Isolated(t)
	global := kube.Kubectl(t, "", "options")
	isPlugin := func(c docs.Command) bool { return slices.Contains([]string{"lockstep", "krew"}, c.Words[1]) }
	known := map[string]string{}
	seen := 0
	for _, d := range docs.Read(t) {
		for _, c := range d.Commands() {
			if c.Program() != "kubectl" || len(c.Words) < 2 || isPlugin(c) {
				continue
			}
			subcommand, flags := divide(c.Words[1:])
			if subcommand == "" {
				continue
			}
			help, asked := known[subcommand]
			if !asked {
				out, err := kube.TryKubectl(t, "", append(strings.Fields(subcommand), "--help")...)
				if err != nil || !strings.Contains(out, "Usage:") {
					t.Errorf("%s:%d: %s: kubectl has no %s", c.Document, c.Line, c, subcommand)
				}
				help, known[subcommand] = out, out
			}
			for _, flag := range flags {
				seen++
				if !strings.Contains(help, flag) && !strings.Contains(global, flag) {
					t.Errorf("%s:%d: %s: kubectl %s has no flag %s", c.Document, c.Line, c, subcommand, flag)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d flags were found", seen)
	}
}

// divide returns the subcommand of kubectl, with those below it, and its flags as they are in the help.
func divide(words []string) (subcommand string, flags []string) {
	takesValue := []string{"-n", "--namespace"}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "--":
			return subcommand, flags
		case strings.HasPrefix(w, "-") && len(w) > 1:
			name, _, _ := strings.Cut(w, "=")
			if slices.Contains(takesValue, w) {
				i++
			}
			if !strings.HasPrefix(name, "--") {
				name += ", --" // -n, --namespace
			} else {
				name += "="
			}
			flags = append(flags, name)
		case subcommand == "":
			subcommand = w
		case slices.Contains([]string{"create", "create secret", "rollout", "auth", "config"}, subcommand):
			subcommand += " " + w
		}
	}
	return subcommand, flags
}

// kubeconfigIn returns the path of a kubeconfig whose namespace is another one.
func kubeconfigIn(t *testing.T, namespace string) string {
	t.Helper()
	content, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	kube.Kubectl(t, "", "config", "set-context", "--current", "--namespace="+namespace, "--kubeconfig="+path)
	return path
}
