package attack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// The role edit is enough for pods, and not for what is beyond the namespace or for statements in named's configuration.
func TestAttack23BeyondTheNamespace(t *testing.T) {
	kube.Isolated(t)
	n := newTenant(t, "beyond")
	for fields, want := range map[string]string{
		`volumes: [{name: host, hostPath: {path: /}}], volumeMounts: [{name: host, mountPath: /data/host}]`:                          "host has hostPath: use emptyDir",
		`bindcarConfig: {volumes: [{name: keys, nfs: {server: 192.0.2.1, path: /}}]}`:                                                "keys has nfs",
		`config: {bindcarConfig: {volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t, audience: vault}}]}}]}}`: "t has projected",
		`bindcarConfig: {envVars: [{name: KUBERNETES_SERVICE_HOST, value: 192.0.2.1}]}`:                                              "KUBERNETES_SERVICE_HOST: these variables decide which Kubernetes",
		`config: {allowQuery: ['any; }; zone "evil.test" { type primary; file "/etc/passwd"; }; acl x { any']}`:                      "address match list",
		`rndcKey: {algorithm: hmac-sha1}`:                                                        "refused as too weak",
		`config: {dnssec: {signing: {enabled: true, policy: 'x"; include "/etc/passwd'}}}`:       "policy must be the name",
		`config: {dnssec: {signing: {enabled: true, zskLifetime: '1d; include "/etc/passwd"'}}}`: "zskLifetime must be",
	} {
		n.expectRefused(bind9Instance("bad", ", "+fields), want)
	}
	n.expectRefused(strings.Replace(dnsZone("main", "x.test", "clusterRef: dns"), "zoneName: x.test", `zoneName: 'x.test" { }; zone "y'`, 1), "spec.zoneName must be a domain name")
	n.expectRefused(dnsZone("main", "192.0.2.1", "clusterRef: dns"), "not an IP address")
	if out, err := n.try(strings.Replace(bind9Cluster(n.namespace), "Bind9Cluster", "ClusterBind9Provider", 1), "apply", "-f", "-"); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("a tenant may make cluster-scoped clusters: %s", out)
	}
	n.apply(bind9Instance("plain", ""))
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		return n.client.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: "plain-config"}, &corev1.ConfigMap{})
	})
	for _, patch := range []string{
		`{"data":{"named.conf":"include \"/etc/passwd\";"}}`,
		`{"immutable":true}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`, // Kubernetes would delete it.
		`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"me"}}}`,
	} {
		out, err := n.try("", "patch", "configmap", "plain-config", "--type=merge", "-p", patch)
		if err == nil || !strings.Contains(out, "change the Bind9Instance plain or its cluster instead") {
			t.Errorf("a tenant may change named's configuration by %s: %v: %s", patch, err, out)
		}
	}
}

// Where the administrator permits images of some repositories, no others run.
func TestAttack23Image(t *testing.T) {
	kube.Isolated(t)
	n := newTenant(t, "image")
	text, err := os.ReadFile(filepath.Join(kube.Root(t), "manifests/components/image-policy/policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// For this namespace alone.
	policy := strings.ReplaceAll(string(text), "name: lockstep-images", "name: images-"+n.namespace)
	policy = strings.ReplaceAll(policy, "policyName: lockstep-images", "policyName: images-"+n.namespace) +
		"  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + n.namespace + "}}}\n"
	kube.Kubectl(t, policy, "apply", "-f", "-")
	t.Cleanup(func() { kube.Kubectl(t, policy, "delete", "-f", "-") })
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if _, err := n.try(bind9Instance("early", ", image: {image: attacker/named:9.18}"), "apply", "--dry-run=server", "-f", "-"); err == nil {
			return errors.New("the policy is not in force yet")
		}
		return nil
	})
	for fields, want := range map[string]string{
		"image: {image: attacker/named:9.18}":                               "the administrator permits images of internetsystemsconsortium/bind9",
		"bindcarConfig: {image: 'attacker/bindcar:v1'}":                     "the administrator permits images",
		"config: {bindcarConfig: {image: 'ghcr.io/firestoned/bindcar'}}":    "name a tag other than latest, or a digest",
		"image: {image: 'internetsystemsconsortium/bind9:latest'}":          "name a tag other than latest, or a digest",
		"image: {image: 'internetsystemsconsortium/bind9.evil.test/named'}": "the administrator permits images",
	} {
		n.expectRefused(bind9Instance("bad", ", "+fields), want)
	}
	n.apply(bind9Instance("good", ", replicas: 0, image: {image: 'internetsystemsconsortium/bind9:9.18'}"))
}

// The account of the fleet manager cannot run a pod as another one.
func TestAttack23WorkloadAccount(t *testing.T) {
	kube.Isolated(t)
	namespace := kube.Namespace(t, "account")
	config := rest.CopyConfig(kube.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:lockstep-system:lockstep-fleet"}
	fleet := kube.ClientAs(t, config)
	labels := map[string]string{"app": "x"}
	for account, want := range map[string]string{"": "not as default", "powerful": "not as powerful", "x-bind9": ""} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
		err := fleet.Create(t.Context(), set, client.DryRunAll)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("as %q: %v, want %q", account, err, want)
		}
	}
}
