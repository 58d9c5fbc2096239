package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

const appliedEndpoint = `apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: web, namespace: NAMESPACE, labels: {LABELS}}
spec: {endpoints: [{dnsName: www.applied.example, recordType: TYPE, targets: ["TARGET"]}]}
`

const appliedRecord = `apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: api, namespace: NAMESPACE, labels: {zone: LABEL}}
spec: {name: api, ipv4Addresses: [192.0.2.2], TTL}
`

// TestApplyAfterOwnAnnotations: when the controller takes its last annotation from an object, `kubectl apply` still knows what it
// applied: what is taken out of a manifest leaves the object, and `kubectl diff` shows it before.
func TestApplyAfterOwnAnnotations(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "applied.example", 1, 0)
	manifest := func(text string, values ...string) string {
		return strings.NewReplacer(append(values, "NAMESPACE", f.namespace)...).Replace(text)
	}
	first := manifest(appliedEndpoint, "LABELS", "team: shop, tier: web", "TYPE", "A", "TARGET", "192.0.2.1")
	second := manifest(appliedEndpoint, "LABELS", "team: shop, tier: web", "TYPE", "AAAA", "TARGET", "2001:db8::1")
	third := manifest(appliedEndpoint, "LABELS", "team: shop", "TYPE", "AAAA", "TARGET", "2001:db8::1")
	selected := manifest(appliedRecord, "LABEL", "main", "TTL", "ttl: 77")
	left := manifest(appliedRecord, "LABEL", "nobody", "TTL", "ttl: 77")
	without := manifest(appliedRecord, "LABEL", "nobody", ", TTL", "")

	kube.Kubectl(f, first+"---\n"+selected, "apply", "-f", "-")
	f.waitServed("www.applied.example", "A", "192.0.2.1")
	f.waitServed("api.applied.example", "A", "192.0.2.2")
	kube.Kubectl(f, second+"---\n"+left, "apply", "-f", "-")
	f.waitServed("www.applied.example", "AAAA", "2001:db8::1")
	f.waitServed("www.applied.example", "A")
	f.waitServed("api.applied.example", "A")
	endpoint, record := &v1alpha1.DNSEndpoint{ObjectMeta: f.meta("web", nil)}, &v1beta1.ARecord{ObjectMeta: f.meta("api", nil)}
	f.waitWithoutMarks(endpoint)
	f.waitWithoutMarks(record)

	out, err := kube.TryKubectl(f, third+"---\n"+without, "diff", "-f", "-")
	if err == nil || !strings.Contains(out, "tier: web") || !strings.Contains(out, "ttl: 77") {
		f.Errorf("kubectl diff does not show what is taken out of the manifests: %v\n%s", err, out)
	}
	kube.Kubectl(f, third+"---\n"+without, "apply", "-f", "-")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(endpoint), endpoint); err != nil {
		f.Fatal(err)
	}
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(record), record); err != nil {
		f.Fatal(err)
	}
	if _, there := endpoint.Labels["tier"]; there || record.Spec.TTL != nil {
		f.Errorf("what was taken out of the manifests is still there: labels %v, ttl %v", endpoint.Labels, record.Spec.TTL)
	}
	if out, err := kube.TryKubectl(f, third+"---\n"+without, "diff", "-f", "-"); err != nil {
		f.Errorf("kubectl diff after kubectl apply: %v\n%s", err, out)
	}
}

// waitWithoutMarks waits until an object has no annotation of ours any more; the one of kubectl apply has to stay.
func (f *fixture) waitWithoutMarks(o client.Object) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		for name := range o.GetAnnotations() {
			if strings.HasPrefix(name, v1beta1.GroupName+"/") {
				return fmt.Errorf("%s still has the annotation %s", o.GetName(), name)
			}
		}
		return nil
	})
	if _, there := o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; !there {
		f.Errorf("%s has lost the annotation of kubectl apply: %v", o.GetName(), o.GetAnnotations())
	}
}
