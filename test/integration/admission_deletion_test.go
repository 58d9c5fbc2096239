package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Nobody takes a zone, a cluster or the last primary away by accident: kubectl says what depends on it and how to insist.
func TestAdmissionKeepsWhatOthersDependOn(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	none := int32(0)
	f.create(&v1beta1.Bind9Instance{ObjectMeta: f.meta("only", nil), Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "dns", Role: v1beta1.RolePrimary, Replicas: &none}},
		f.cluster("dns", 0, 0), f.cluster("unused", 0, 0), f.dnsZone("empty", "empty.example"))
	keeps := map[string][]string{
		"dnszone/main":       {"zone admission.example still has records, such as ARecord " + f.namespace + "/www"},
		"bind9cluster/dns":   {"Bind9Cluster dns still serves zones, such as"},
		"bind9instance/only": {"instance only is the last primary of zones, such as"},
	}
	for object, want := range keeps {
		want = append(want, "kubectl annotate", v1beta1.AllowDeletionAnnotation+"=true")
		// By dry run, until the webhook's caches have everything.
		kube.Eventually(t, settleTimeout, func(context.Context) error {
			out, err := kube.TryKubectl(t, "", "-n", f.namespace, "delete", object, "--dry-run=server")
			if err == nil {
				return fmt.Errorf("%s may be deleted: %s", object, out)
			}
			for _, word := range want {
				if !strings.Contains(out, word) {
					return fmt.Errorf("kubectl does not say %q: %s", word, out)
				}
			}
			return nil
		})
	}
	for _, object := range []string{"bind9cluster/unused", "dnszone/empty", "arecord/www"} {
		kube.Kubectl(t, "", "-n", f.namespace, "delete", object, "--dry-run=server")
	}
	// One command may take everything away, faster than caches learn of each part.
	kube.Kubectl(t, "", "-n", f.namespace, "delete", "arecord/www", "dnszone/main", "dnszone/empty", "bind9instance/only", "bind9cluster/dns", "--timeout=120s")
}

// A namespace goes with all that is in it, also when the objects are deleted by hand while it goes.
func TestAdmissionLetsNamespacesGo(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	held := f.aRecord("www", "www", "192.0.2.1")
	held.Finalizers = []string{"example.com/held"}
	f.create(held)
	kube.Eventually(t, settleTimeout, func(ctx context.Context) error {
		if err := f.client.Delete(ctx, &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}, client.DryRunAll); err == nil {
			return fmt.Errorf("the zone may be deleted although it has a record")
		}
		return nil
	})
	kube.Kubectl(t, "", "delete", "namespace", f.namespace, "--wait=false")
	kube.Eventually(t, settleTimeout, func(ctx context.Context) error {
		return client.IgnoreNotFound(f.client.Delete(ctx, &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}))
	})
	change(f, held, func(r *v1beta1.ARecord) { r.Finalizers = nil })
	kube.Kubectl(t, "", "wait", "--for=delete", "namespace/"+f.namespace, "--timeout=120s")
}
