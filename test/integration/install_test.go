package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// Kustomize alone installs into another namespace and with another account of the controller: nothing of what it gives
// names the usual ones, and kube-apiserver takes the conditions.
func TestInstallElsewhere(t *testing.T) {
	kube.Install(t)
	manifests := filepath.Join(kube.Root(t), "manifests")
	overlay, err := os.MkdirTemp(filepath.Join(manifests, "overlays"), "elsewhere-") // Kustomize takes relative paths alone.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(overlay); err != nil {
			t.Error(err)
		}
	})
	text := `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: team-dns
resources: [../../base]
components: [../../components/high-availability, ../../components/network-policy]
transformers: [../../references]
patches:
- target: {kind: ServiceAccount, name: lockstep-controller}
  options: {allowNameChange: true}
  patch: |-
    - {op: replace, path: /metadata/name, value: dns-controller}
`
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered := kube.Kubectl(t, "", "kustomize", overlay)
	if strings.Contains(rendered, system) {
		t.Errorf("something still names %s:\n%s", system, around(rendered, system))
	}
	for what, want := range map[string]int{
		`["dns-controller"`:                                 4, // conditions
		`"system:serviceaccount:team-dns:"`:                 4,
		"serviceAccountName: dns-controller\n":              1,
		"value: dns-controller\n":                           1, // what the webhook is told
		"- kube-system\n      - team-dns\n":                 7, // one for each webhook
		"resourceNames:\n  - team-dns\n":                    1,
		"kind: ServiceAccount\n  name: dns-cont":            2, // the subjects of the bindings
		"authentication-reader\n  namespace: kube-system\n": 1,
	} {
		if got := strings.Count(rendered, what); got != want {
			t.Errorf("%d times %q, want %d", got, what, want)
		}
	}
	for _, document := range strings.Split(rendered, "\n---\n") {
		if strings.Contains(document, "WebhookConfiguration\n") || strings.Contains(document, "apiVersion: flowcontrol") {
			kube.Kubectl(t, document, "apply", "--dry-run=server", "-f", "-")
		}
	}
}

// around gives the lines that hold a word, with their numbers.
func around(text, word string) string {
	var lines []string
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, word) {
			lines = append(lines, fmt.Sprintf("%d: %s", i+1, line))
		}
	}
	return strings.Join(lines, "\n")
}
