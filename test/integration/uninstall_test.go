package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Everything goes, with zones and records present, and so do the namespaces that held them.
func TestMainJobUninstall(t *testing.T) {
	kube.Disruptive(t, nil)
	f := newFixture(t, "uninstall.example", 1, 1)
	f.requireAlone()
	defer reinstall(f)
	for i := range 100 {
		f.create(f.aRecord(fmt.Sprint("host-", i), fmt.Sprint("host-", i), "192.0.2.1"))
	}
	f.waitServed("host-99.uninstall.example.", "A", "192.0.2.1")
	f.requireOwnersOutliveChildren()
	began := time.Now()
	kube.Uninstall(t, kube.Overlay, system)
	t.Logf("kubectl delete -k took %s", time.Since(began).Round(time.Second))
	f.waitNothingLeft()
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		var sets appsv1.StatefulSetList
		if err := f.client.List(ctx, &sets, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		if len(sets.Items) > 0 {
			return fmt.Errorf("StatefulSet %s is left", sets.Items[0].Name)
		}
		return nil
	})
	kube.Kubectl(t, "", "delete", "namespace", f.namespace, "--wait=false")
	t.Run("and comes back in another namespace", testElsewhere)
	kube.Kubectl(t, "", "wait", "--for=delete", "namespace/"+f.namespace, "--timeout=120s")
	f.waitNothingLeft()
}

// Without controller and fleet manager the deletion waits for the command of docs/uninstall.md, and a namespace with it. That the API server is
// away as well changes nothing.
func TestMainJobUninstallWithoutController(t *testing.T) {
	kube.Disruptive(t, nil)
	f := newFixture(t, "uninstall.example", 1, 0)
	f.requireAlone()
	defer reinstall(f)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.uninstall.example.", "A", "192.0.2.1")
	f.scaleAPIServer(0)
	stopControllers(t)
	kube.Kubectl(t, "", "delete", "-k", kube.Overlay, "--wait=false")
	kube.Kubectl(t, "", "delete", "namespace", f.namespace, "--wait=false")

	remedy := exec.CommandContext(t.Context(), "bash", "-c", documentedRemedy(t))
	out, _ := remedy.CombinedOutput() // It reports what Kubernetes deletes meanwhile as not found.
	t.Logf("the command of docs/uninstall.md:\n%s", out)
	kube.Kubectl(t, "", "wait", "--for=delete", "namespace/"+f.namespace, "namespace/"+system, "--timeout=120s")
	f.waitNothingLeft()
}

// requireAlone fails the test before it does harm: uninstalling takes all zones of the cluster away.
func (f *fixture) requireAlone() {
	f.Helper()
	var zones v1beta1.DNSZoneList
	if err := f.client.List(f.Context(), &zones); err != nil {
		f.Fatal(err)
	}
	for _, zone := range zones.Items {
		if zone.Namespace != f.namespace && zone.DeletionTimestamp == nil && !strings.HasPrefix(zone.Namespace, "it-") {
			f.Fatalf("DNSZone %s/%s is not of a test: this cluster is in use, and the test would uninstall Lockstep", zone.Namespace, zone.Name)
		}
	}
}

// requireOwnersOutliveChildren fails the test unless the objects that own pods and Secrets wait for Kubernetes to delete these. If they
// did not, the garbage collector could miss them: it watches a kind that was just installed again only after a while.
func (f *fixture) requireOwnersOutliveChildren() {
	f.Helper()
	owners := kube.Kubectl(f, "", "get", "bind9clusters,bind9instances", "-n", f.namespace, "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.finalizers}{"\n"}{end}`)
	lines := strings.Split(strings.TrimSpace(owners), "\n")
	if len(lines) != 1+f.size {
		f.Fatalf("there are %d owners, want a cluster and %d instances:\n%s", len(lines), f.size, owners)
	}
	for _, line := range lines {
		if !strings.Contains(line, metav1.FinalizerDeleteDependents) {
			f.Errorf("an owner can be gone before its children: %s", line)
		}
	}
}

// waitNothingLeft waits until no cluster-wide object of Lockstep exists.
func (f *fixture) waitNothingLeft() {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		out, err := kube.TryKubectl(f, "", "get", "namespaces,crd,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations,apiservices,mutatingwebhookconfigurations,validatingwebhookconfigurations,"+
			"validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for line := range strings.Lines(out) {
			if strings.Contains(line, "lockstep") || strings.Contains(line, "bindy.firestoned.io") || strings.Contains(line, "externaldns.k8s.io") {
				return fmt.Errorf("left behind: %s", strings.TrimSpace(line))
			}
		}
		return nil
	})
}

// reinstall brings Lockstep back for the tests that follow, however this one ended. What is still going is waited for: it would go after the
// installation. A test defers it. A cleanup would be too late: it runs without the test's context.
func reinstall(f *fixture) {
	f.Helper()
	defer kube.Reinstall(f) // even if something is left
	if f.Failed() {
		f.removeRemains()
	}
	f.waitNothingLeft()
}

// removeRemains completes an uninstallation that a test has begun, or was about to begin, when it failed.
func (f *fixture) removeRemains() {
	f.Helper()
	for _, args := range [][]string{
		{"delete", "-k", kube.Overlay, "--ignore-not-found", "--wait=false"},
		{"delete", "namespace", "team-dns", "--ignore-not-found", "--wait=false"}, // that of testElsewhere
	} {
		if out, err := kube.TryKubectl(f, "", args...); err != nil {
			f.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	out, _ := exec.CommandContext(f.Context(), "bash", "-c", documentedRemedy(f.T)).CombinedOutput() // It reports what Kubernetes deletes meanwhile.
	f.Logf("the command of docs/uninstall.md:\n%s", out)
}

// documentedRemedy is the last command of docs/uninstall.md that patches.
func documentedRemedy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kube.Root(t), "docs", "uninstall.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 1 && strings.Contains(block, "kubectl patch") {
			return strings.TrimPrefix(block, "sh\n")
		}
	}
	t.Fatal("docs/uninstall.md has no command that patches")
	return ""
}
