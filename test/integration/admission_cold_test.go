package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// coldWebhook is a webhook that may not read anything yet. No Service leads to it.
const coldWebhook = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: cold}
---
apiVersion: v1
kind: Pod
metadata: {name: cold}
spec:
  serviceAccountName: cold
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: webhook
    image: lockstep:dev
    imagePullPolicy: IfNotPresent
    args: [webhook, --namespace=lockstep-system, "--health-probe-bind-address=:8081", --metrics-bind-address=0]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {httpGet: {path: /readyz/caches, port: 8081}, periodSeconds: 1}
`

// A webhook whose caches are not full is not ready, and becomes ready when they are.
func TestAdmissionNotReadyWithColdCaches(t *testing.T) {
	kube.Isolated(t)
	namespace := kube.Namespace(t, "it-cold")
	kube.Kubectl(t, coldWebhook, "-n", namespace, "apply", "-f", "-")
	caches := func() (string, error) {
		return kube.TryKubectl(t, "", "get", "--raw", "/api/v1/namespaces/"+namespace+"/pods/cold:8081/proxy/readyz/caches")
	}
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if out, err := caches(); err == nil || !strings.Contains(out, "the caches are not full yet") {
			return fmt.Errorf("it says %q, want that its caches are not full", out)
		}
		return nil
	})
	if out := kube.Kubectl(t, "", "-n", namespace, "get", "pod", "cold", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); out != "False" {
		t.Errorf("Ready=%s with cold caches", out)
	}
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "clusterrolebinding", namespace, "--ignore-not-found") })
	kube.Kubectl(t, "", "create", "clusterrolebinding", namespace, "--clusterrole=lockstep-webhook", "--serviceaccount="+namespace+":cold")
	kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition=Ready", "pod/cold", "--timeout=120s")
	if out, err := caches(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
