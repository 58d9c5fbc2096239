package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Nobody takes a zone, a cluster or the last primary away by accident: they stay at work while something depends on them, and kubectl says
// what and how to insist. Where Kubernetes would delete the servers at once, they are not deleted.
func TestAdmissionKeepsWhatOthersDependOn(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	none := int32(0)
	f.create(&v1beta1.Bind9Instance{ObjectMeta: f.meta("only", nil), Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "dns", Role: v1beta1.RolePrimary, Replicas: &none}},
		f.cluster("dns", 0, 0), f.cluster("unused", 0, 0), f.dnsZone("empty", "empty.example"))
	dependents := map[string]string{
		"dnszone/main":       "zone admission.example still has records, such as ARecord " + f.namespace + "/www",
		"bind9cluster/dns":   "Bind9Cluster dns still serves zones, such as",
		"bind9instance/only": "instance only is the last primary of zones, such as",
	}
	for object, why := range dependents {
		for cascade, want := range map[string]string{"background": "it stays at work until these are deleted", "foreground": "delete records first, then zones, then their servers"} {
			if object == "dnszone/main" && cascade == "foreground" {
				continue
			}
			// By dry run, until the webhook's caches have everything.
			kube.Eventually(t, kube.Settle, func(context.Context) error {
				out, err := kube.TryKubectl(t, "", "-n", f.namespace, "delete", object, "--dry-run=server", "--cascade="+cascade)
				if (err == nil) != (cascade == "background") {
					return fmt.Errorf("deleting %s with --cascade=%s: %w: %s", object, cascade, err, out)
				}
				for _, word := range []string{why, want, "kubectl annotate", v1beta1.AllowDeletionAnnotation + "=true"} {
					if !strings.Contains(out, word) {
						return fmt.Errorf("kubectl does not say %q: %s", word, out)
					}
				}
				return nil
			})
		}
	}
	for _, object := range []string{"bind9cluster/unused", "dnszone/empty", "arecord/www"} {
		if out := kube.Kubectl(t, "", "-n", f.namespace, "delete", object, "--dry-run=server"); strings.Contains(out, "Warning") {
			t.Errorf("deleting %s: %s", object, out)
		}
	}
	// One command may take everything away, faster than caches learn of each part.
	kube.Kubectl(t, "", "-n", f.namespace, "delete", "arecord/www", "dnszone/main", "dnszone/empty", "bind9instance/only", "bind9cluster/dns", "--timeout=120s")
}

// deletable is a file with everything: kubectl deletes in its order.
var deletable = []string{
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: Bind9Cluster\nmetadata: {name: dns}\nspec: {primary: {replicas: 1}}\n",
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: Bind9Instance\nmetadata: {name: edge, labels: {pool: edge}}\nspec: {role: primary}\n",
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: ZoneGrant\nmetadata: {name: NAMESPACE}\nspec: {suffixes: [NAMESPACE.example], namespaces: [NAMESPACE]}\n",
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: DNSProvider\nmetadata: {name: away}\nspec: {rfc2136: {primaries: [{address: 192.0.2.53}], updateKey: {secretRef: {name: none}}}}\n",
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: DNSZone\nmetadata: {name: main}\nspec: {zoneName: NAMESPACE.example, clusterRef: dns, " +
		deletableSOA + ", recordsFrom: [{selector: {matchLabels: {zone: main}}}]}\n",
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: DNSZone\nmetadata: {name: edge}\nspec: {zoneName: edge.NAMESPACE.example, " +
		"bind9InstancesFrom: [{selector: {matchLabels: {pool: edge}}}], " + deletableSOA + "}\n",
	"apiVersion: bindy.firestoned.io/v1beta1\nkind: ARecord\nmetadata: {name: www, labels: {zone: main}}\nspec: {name: www, ipv4Addresses: [192.0.2.1]}\n",
	"apiVersion: externaldns.k8s.io/v1alpha1\nkind: DNSEndpoint\nmetadata: {name: shop}\n" +
		"spec: {endpoints: [{dnsName: shop.edge.NAMESPACE.example, recordType: A, targets: [192.0.2.2]}]}\n",
}

const deletableSOA = "soaRecord: {primaryNs: ns1.example., adminEmail: hostmaster.example.}"

// One kubectl delete -f takes away what one kubectl apply -f made, in the order of the file and in the opposite one. Meanwhile everything is
// served that something depends on.
func TestDeleteFile(t *testing.T) {
	kube.Isolated(t)
	for _, reversed := range []bool{false, true} {
		t.Run(fmt.Sprintf("reversed=%t", reversed), func(t *testing.T) {
			t.Parallel()
			c, namespace := kube.Client(t), kube.Namespace(t, "it-delete")
			documents := slices.Clone(deletable)
			manifest := strings.ReplaceAll(strings.Join(documents, "---\n"), "NAMESPACE", namespace)
			kube.Kubectl(t, manifest, "-n", namespace, "apply", "-f", "-")
			kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
				for _, name := range []string{"main", "edge"} {
					zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
					if err := c.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil || !meta.IsStatusConditionTrue(zone.Status.Conditions, "Ready") {
						return fmt.Errorf("zone %s is not ready: %w", name, err)
					}
				}
				return nil
			})
			if reversed {
				slices.Reverse(documents)
				manifest = strings.ReplaceAll(strings.Join(documents, "---\n"), "NAMESPACE", namespace)
			} else {
				// The first half of it, and nothing is lost.
				kube.Kubectl(t, "", "-n", namespace, "delete", "bind9cluster/dns", "dnszone/main", "--wait=false")
				kube.Kubectl(t, "", "-n", namespace, "patch", "arecord/www", "--type=merge", "-p", `{"spec":{"ipv4Addresses":["192.0.2.9"]}}`)
				kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
			}
			kube.Kubectl(t, manifest, "-n", namespace, "delete", "-f", "-", "--timeout=120s")
		})
	}
}

// Tools ask for each deletion once, in an order of their own, and some forget what was refused. Whatever the order, and however new the
// objects are, nothing is refused and nothing stays.
func TestDeleteInAnyOrder(t *testing.T) {
	kube.Isolated(t)
	for _, order := range [][]string{
		{"bind9cluster/dns", "dnszone/main", "arecord/www"}, {"bind9cluster/dns", "arecord/www", "dnszone/main"},
		{"dnszone/main", "bind9cluster/dns", "arecord/www"}, {"dnszone/main", "arecord/www", "bind9cluster/dns"},
		{"arecord/www", "bind9cluster/dns", "dnszone/main"}, {"arecord/www", "dnszone/main", "bind9cluster/dns"},
	} {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			t.Parallel()
			namespace := kube.Namespace(t, "it-order")
			manifest := strings.ReplaceAll(strings.Join([]string{deletable[0], deletable[4], deletable[6]}, "---\n"), "NAMESPACE", namespace)
			for _, isNew := range []bool{true, false} {
				kube.Kubectl(t, manifest, "-n", namespace, "apply", "-f", "-")
				if !isNew {
					kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
				}
				for _, object := range order {
					kube.Kubectl(t, "", "-n", namespace, "delete", object, "--wait=false")
				}
				kube.Kubectl(t, "", append([]string{"-n", namespace, "wait", "--for=delete", "--timeout=120s"}, order...)...)
			}
		})
	}
}

// Servers wait for zones of other namespaces, too, but not once their own namespace is being deleted.
func TestServersWaitForZonesOfOtherNamespaces(t *testing.T) {
	kube.Isolated(t)
	servers, zones := kube.Namespace(t, "it-servers"), kube.Namespace(t, "it-zones")
	instance := deletable[1][:strings.Index(deletable[1], "spec:")]
	instance = strings.Replace(instance, "metadata: {", `metadata: {annotations: {bindy.firestoned.io/allow-zone-namespaces: "*"}, `, 1) + "spec: {role: primary}\n"
	zone := strings.ReplaceAll(strings.Replace(deletable[5], "metadata: {", "metadata: {annotations: {bindy.firestoned.io/allow-instance-namespaces: "+servers+"}, ", 1), "NAMESPACE", zones)
	start := func() {
		t.Helper()
		kube.Kubectl(t, instance, "-n", servers, "apply", "-f", "-")
		kube.Kubectl(t, zone, "-n", zones, "apply", "-f", "-")
		kube.Kubectl(t, "", "-n", zones, "wait", "--for=condition=Ready", "dnszone/edge", "--timeout=120s")
	}
	start()
	out, err := kube.TryKubectl(t, "", "-n", servers, "delete", "bind9instance/edge", "--wait=false")
	if err != nil || !strings.Contains(out, "such as one of another namespace: it stays at work") {
		t.Fatalf("%v: %s", err, out)
	}
	kube.Kubectl(t, "", "-n", zones, "delete", "dnszone/edge", "--timeout=120s")
	kube.Kubectl(t, "", "-n", servers, "wait", "--for=delete", "bind9instance/edge", "--timeout=120s")
	start()
	kube.Kubectl(t, "", "-n", servers, "delete", "bind9instance/edge", "--wait=false")
	kube.Kubectl(t, "", "delete", "namespace", servers, "--timeout=120s")
}

// A namespace goes with all that is in it, also when the objects are deleted by hand while it goes.
func TestAdmissionLetsNamespacesGo(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	held := f.aRecord("www", "www", "192.0.2.1")
	held.Finalizers = []string{"example.com/held"}
	f.create(held)
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		zone := &v1beta1.DNSZone{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "main"}, zone); err != nil || !slices.Contains(zone.Finalizers, v1beta1.DependentsFinalizer) {
			return fmt.Errorf("the zone would not wait for its record: %w", err)
		}
		return nil
	})
	kube.Kubectl(t, "", "delete", "namespace", f.namespace, "--wait=false")
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		return client.IgnoreNotFound(f.client.Delete(ctx, &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}))
	})
	change(f, held, func(r *v1beta1.ARecord) { r.Finalizers = nil })
	kube.Kubectl(t, "", "wait", "--for=delete", "namespace/"+f.namespace, "--timeout=120s")
}
