package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Kustomize alone installs into another namespace and with other accounts of the controller and the fleet manager: nothing of its output
// names the usual ones, and kube-apiserver takes the conditions. TestMainJobUninstall shows that it works.
func TestInstallElsewhere(t *testing.T) {
	kube.Isolated(t)
	rendered := kube.Kubectl(t, "", "kustomize", overlayElsewhere(t, "../../base", "../../components/high-availability", "../../components/network-policy"))
	if strings.Contains(rendered, system) {
		t.Errorf("something still names %s:\n%s", system, linesContaining(rendered, system))
	}
	for what, want := range map[string]int{
		`["dns-controller"`:                                 3, // conditions
		`["dns-fleet"`:                                      4,
		`"system:serviceaccount:team-dns:"`:                 7,
		"serviceAccountName: dns-controller\n":              1,
		"serviceAccountName: dns-fleet\n":                   1,
		"value: dns-controller\n":                           2, // the environments of the webhook and the fleet manager
		"- kube-system\n      - team-dns\n":                 7, // one for each webhook
		"resourceNames:\n  - team-dns\n":                    1,
		"kind: ServiceAccount\n  name: dns-cont":            2, // the subjects of the bindings
		"kind: ServiceAccount\n  name: dns-fleet":           3,
		"authentication-reader\n  namespace: kube-system\n": 1,
	} {
		if got := strings.Count(rendered, what); got != want {
			t.Errorf("%d times %q, want %d", got, what, want)
		}
	}
	for _, document := range strings.Split(rendered, "\n---\n") {
		if strings.Contains(document, "WebhookConfiguration\n") || strings.Contains(document, "kind: ValidatingAdmissionPolicy\n") || strings.Contains(document, "apiVersion: flowcontrol") {
			kube.Kubectl(t, document, "apply", "--dry-run=server", "-f", "-")
		}
	}
}

// overlayElsewhere makes an overlay, as docs/install.md describes it, that installs into the namespace team-dns and calls the
// accounts dns-controller and dns-fleet.
func overlayElsewhere(t *testing.T, resource string, components ...string) (overlay string) {
	t.Helper()
	text := `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: team-dns
resources: [` + resource + `]
components: [` + strings.Join(components, ", ") + `]
transformers: [../../references]
patches:
- target: {kind: ServiceAccount, name: lockstep-controller}
  options: {allowNameChange: true}
  patch: |-
    - {op: replace, path: /metadata/name, value: dns-controller}
- target: {kind: ServiceAccount, name: lockstep-fleet}
  options: {allowNameChange: true}
  patch: |-
    - {op: replace, path: /metadata/name, value: dns-fleet}
`
	return writeOverlay(t, map[string]string{"kustomization.yaml": text})
}

// writeOverlay makes an overlay beside those of the manifests.
func writeOverlay(t *testing.T, files map[string]string) (overlay string) {
	t.Helper()
	overlay, err := os.MkdirTemp(filepath.Join(kube.Root(t), "manifests", "overlays"), "test-") // Kustomize takes relative paths alone.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(overlay); err != nil {
			t.Error(err)
		}
	})
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(overlay, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// The webhook's port is closed to all but the control plane, as docs/install.md describes it, and kube-apiserver's calls pass, over new
// connections too.
func TestInstallWebhookNetworkPolicy(t *testing.T) {
	kube.Disruptive(t, nil)
	var control corev1.Endpoints //nolint:staticcheck // kube-apiserver's own are there
	if err := kube.Client(t).Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &control); err != nil {
		t.Fatal(err)
	}
	cidr := control.Subsets[0].Addresses[0].IP + "/32"
	rendered := kube.Kubectl(t, "", "kustomize", writeOverlay(t, map[string]string{
		"kustomization.yaml": "resources: [../default, control-plane.yaml]\ncomponents: [../../components/network-policy, ../../components/webhook-network-policy]\n",
		"control-plane.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: control-plane, annotations: {config.kubernetes.io/local-config: 'true'}}\ndata: {cidr: " + cidr + "}\n",
	}))
	policy := ""
	for _, document := range strings.Split(rendered, "\n---\n") {
		if strings.Contains(document, "kind: NetworkPolicy") && strings.Contains(document, "name: lockstep-webhook") {
			policy = document
		}
		if strings.Contains(document, "name: control-plane") {
			t.Errorf("the overlay would create\n%s", document)
		}
	}
	if !strings.Contains(policy, "cidr: "+cidr) {
		t.Fatalf("the policy does not name the control plane:\n%s", policy)
	}
	kube.Kubectl(t, policy, "apply", "-f", "-")
	defer kube.Kubectl(t, "", "-n", system, "delete", "networkpolicy", "lockstep-webhook")
	kube.Kubectl(t, "", "-n", system, "rollout", "restart", "deployment/lockstep-webhook")
	kube.Kubectl(t, "", "-n", system, "rollout", "status", "deployment/lockstep-webhook", "--timeout=120s")
	for n := range 20 {
		bad := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("probe-", n)}}
		bad.Spec.Name, bad.Spec.IPv4Addresses = "www", []string{"192.0.2.300"}
		if err := kube.Client(t).Create(t.Context(), bad, client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Fatalf("a bad record: %v", err)
		}
	}
}

// testElsewhere installs into another namespace, with other accounts of the controller and the fleet manager, has zones and records go through
// all components there, and uninstalls again.
func testElsewhere(t *testing.T) {
	overlay := overlayElsewhere(t, "../default")
	defer kube.Uninstall(t, overlay, "team-dns")
	kube.InstallOverlay(t, overlay, "team-dns")
	f := newFixture(t, "elsewhere.example", 1, 1)
	www := f.aRecord("www", "www", "192.0.2.1")
	f.create(www)
	f.waitInSync("arecord.www", 2)
	if err := f.client.Create(t.Context(), f.aRecord("other", "www", "192.0.2.300"), client.DryRunAll); !apierrors.IsInvalid(err) {
		t.Errorf("a bad record: %v", err)
	}
	// Admission lets nobody but the controller take the finalizer away, and knows it by its account.
	if err := f.client.Delete(t.Context(), www); err != nil {
		t.Fatal(err)
	}
	f.waitGone(www)
	f.waitServed("www.elsewhere.example.", "A")
}

// linesContaining returns the lines that contain a word, with their numbers.
func linesContaining(text, word string) string {
	var lines []string
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, word) {
			lines = append(lines, fmt.Sprintf("%d: %s", i+1, line))
		}
	}
	return strings.Join(lines, "\n")
}
