package inventory_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// Servers that are deleted stay at work while a zone needs them, or is still to be deleted from them. A namespace that ends waits for no other.
func TestAwaitDependents(t *testing.T) {
	now := &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}
	deleted := func(o client.Object) client.Object {
		o.SetDeletionTimestamp(now)
		o.SetFinalizers([]string{v1beta1.DependentsFinalizer})
		return o
	}
	cluster := func() client.Object {
		return &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "c"}}
	}
	global := func() client.Object {
		return &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "g", UID: "g1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "servers"}}
	}
	instance := func(namespace, name, cluster string) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"pool": "a"}},
			Spec: v1beta1.Bind9InstanceSpec{ClusterRef: cluster, Role: v1beta1.RolePrimary}}
	}
	member := instance("servers", "g-primary-0", "g")
	member.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: "g", UID: "g1"}}
	zone := func(namespace, cluster string, finalizers ...string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "z", Finalizers: finalizers}}
		z.Spec.ZoneName = "example.com"
		if z.Spec.ClusterRef = cluster; cluster == "" {
			z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}}}
		}
		if len(finalizers) > 0 {
			z.DeletionTimestamp = now
		}
		return z
	}
	open := func(i *v1beta1.Bind9Instance) *v1beta1.Bind9Instance {
		i.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "elsewhere"}
		return i
	}
	guest := zone("elsewhere", "")
	guest.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: "dns"}
	namespace := func(name string, ends bool) client.Object {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/held"}}}
		if ends {
			n.DeletionTimestamp = now
		}
		return n
	}
	allowed := deleted(cluster())
	allowed.SetAnnotations(map[string]string{v1beta1.AllowDeletionAnnotation: "true"})
	for name, c := range map[string]struct {
		servers client.Object
		others  []client.Object
		going   bool
		waits   bool
	}{
		"a cluster at work":             {servers: cluster(), waits: true},
		"without zones":                 {servers: deleted(cluster()), others: []client.Object{instance("dns", "c-primary-0", "c")}, going: true},
		"with a zone":                   {servers: deleted(cluster()), others: []client.Object{instance("dns", "c-primary-0", "c"), zone("dns", "c")}, waits: true},
		"with a zone that waits itself": {servers: deleted(cluster()), others: []client.Object{instance("dns", "c-primary-0", "c"), zone("dns", "c", v1beta1.DependentsFinalizer)}, waits: true},
		"with a zone that goes":         {servers: deleted(cluster()), others: []client.Object{instance("dns", "c-primary-0", "c"), zone("dns", "c", v1beta1.Finalizer)}, waits: true},
		"with a zone others hold":       {servers: deleted(cluster()), others: []client.Object{instance("dns", "c-primary-0", "c"), zone("dns", "c", "example.com/x")}, going: true},
		"with a zone, by annotation":    {servers: allowed, others: []client.Object{instance("dns", "c-primary-0", "c"), zone("dns", "c")}, going: true},
		"a cluster-scoped one":          {servers: deleted(global()), others: []client.Object{member, zone("dns", "g")}, waits: true},
		"a last primary":                {servers: deleted(instance("dns", "a", "")), others: []client.Object{zone("dns", "")}, waits: true},
		"one of two primaries":          {servers: deleted(instance("dns", "a", "")), others: []client.Object{instance("dns", "b", ""), zone("dns", "")}, going: true},
		"the last of two that go":       {servers: deleted(instance("dns", "a", "")), others: []client.Object{deleted(instance("dns", "b", "")), zone("dns", "")}, waits: true},
		"with zones it may not serve":   {servers: deleted(instance("dns", "a", "")), others: []client.Object{zone("elsewhere", "")}, going: true},
		"with a zone of elsewhere":      {servers: deleted(open(instance("dns", "a", ""))), others: []client.Object{guest, namespace("dns", false)}, waits: true},
		"with its namespace":            {servers: deleted(open(instance("dns", "a", ""))), others: []client.Object{guest, namespace("dns", true)}, going: true},
		"after its namespace":           {servers: deleted(open(instance("dns", "a", ""))), others: []client.Object{guest}, going: true},
		"with its namespace and a zone": {servers: deleted(instance("dns", "a", "")), others: []client.Object{zone("dns", ""), namespace("dns", true)}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(v1beta1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(c.others, c.servers)...).Build()
			servers := c.servers.DeepCopyObject().(client.Object)
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(servers), servers); err != nil {
				t.Fatal(err)
			}
			going, err := inventory.AwaitDependents(t.Context(), kube, "lockstep-system", servers)
			if err != nil || going != c.going {
				t.Errorf("going = %t, %v", going, err)
			}
			err = kube.Get(t.Context(), client.ObjectKeyFromObject(servers), servers)
			if waits := err == nil && slices.Contains(servers.GetFinalizers(), v1beta1.DependentsFinalizer); waits != c.waits {
				t.Errorf("waits = %t, %v", waits, err)
			}
		})
	}
}
