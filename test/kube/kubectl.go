package kube

import (
	"os/exec"
	"strings"
	"testing"
)

// Kubectl runs kubectl in the repository's root with input on its standard input, and returns its output. It fails the test
// when kubectl fails.
func Kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := TryKubectl(t, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl is Kubectl for a command that may fail. It returns standard output and standard error together.
func TryKubectl(t testing.TB, input string, args ...string) (string, error) {
	t.Helper()
	return runKubectl(t, input, args...)
}

// runKubectl runs kubectl, which lives for a moment: by default it would collect garbage for a third of that.
func runKubectl(t testing.TB, input string, args ...string) (string, error) {
	t.Helper()
	return runCommand(Root(t), input, "env", append([]string{"GOGC=400", "KUBECONFIG=" + Kubeconfig(t, args...), "kubectl"}, args...)...)
}

func runCommand(dir, input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
