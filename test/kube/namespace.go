package kube

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace creates a namespace for one test, which enforces the restricted Pod Security Standard, and deletes it after the
// test. The test fails when the deletion does not end.
func Namespace(t testing.TB, prefix string) string {
	t.Helper()
	c := Client(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix + "-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(describeNamespace(t, ns.Name))
		}
		Kubectl(t, "", "delete", "namespace", ns.Name, "--ignore-not-found", "--timeout=120s")
	})
	return ns.Name
}

// describeNamespace returns what helps to understand a failure: the objects and events of the test's namespace, and what those who
// work on them have logged of it last.
func describeNamespace(t testing.TB, namespace string) string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "dns,pods,statefulsets,services", "-o", "wide"},
		{"get", "syncstatus", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		out, _ := runCommand(Root(t), "", "kubectl", append([]string{"--namespace", namespace}, args...)...)
		b.WriteString(out + "\n")
	}
	for _, deployment := range []string{"lockstep-fleet", "lockstep-controller"} {
		out, _ := runCommand(Root(t), "", "kubectl", "--namespace", "lockstep-system", "logs", "deployment/"+deployment, "--tail=1000")
		lines := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return !strings.Contains(line, namespace) })
		b.WriteString(deployment + ":\n" + strings.Join(lines[max(0, len(lines)-lastLines):], "\n") + "\n")
	}
	return b.String()
}

// lastLines is how much of a log is shown: few enough for a reader to find what the test said itself.
const lastLines = 12
