package migrate

import (
	stderrors "errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// What has no effect here is named with its object; a zone that Bindy signs is, until its finalizer is gone.
func TestNotTakenOver(t *testing.T) {
	tls := &v1beta1.Bind9Config{BindcarConfig: &v1beta1.BindcarConfig{TLS: &v1beta1.BindcarTLSConfig{Enabled: new(true)}}}
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dns"}, Spec: v1beta1.Bind9ClusterSpec{Global: tls}}
	provider := &v1beta1.ClusterBind9Provider{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	provider.Spec.Global = tls
	plain := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "plain"}}
	signed := func(name string, finalizers ...string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Finalizers: finalizers}}
		z.Status.DNSSEC = &v1beta1.DNSSECStatus{Signed: true}
		return z
	}
	unsigned := signed("unsigned", "bindy.firestoned.io/dnszone-finalizer")
	unsigned.Status.DNSSEC = nil
	c := newFakeClient(t, cluster, provider, plain, signed("theirs", "bindy.firestoned.io/dnszone-finalizer"), signed("ours"), unsigned)
	found, err := takeInventory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DNSZone team/theirs is signed: ", "Bind9Cluster team/dns: bindcarConfig.tls: ", "ClusterBind9Provider shared: bindcarConfig.tls: "} {
		if !slices.ContainsFunc(found.lost, func(text string) bool { return strings.HasPrefix(text, want) }) {
			t.Errorf("no %q in %q", want, found.lost)
		}
	}
	if len(found.lost) != 3 {
		t.Errorf("not taken over: %q", found.lost)
	}
}

// An object that Lockstep changes after the inventory was taken loses Bindy's finalizer, and keeps that change.
func TestFinalizersOfChangedObjects(t *testing.T) {
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dns", Finalizers: []string{"bindy.firestoned.io/bind9cluster-finalizer"}}}
	c := newFakeClient(t, cluster)
	found, err := takeInventory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	changed := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dns"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
		t.Fatal(err)
	}
	changed.Finalizers = append(changed.Finalizers, metav1.FinalizerDeleteDependents)
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := found.removeFinalizers(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil || !slices.Equal(changed.Finalizers, []string{metav1.FinalizerDeleteDependents}) {
		t.Errorf("finalizers %q, error %v", changed.Finalizers, err)
	}
}

// Bindy's Scout leaves finalizers on routes, too, of the version of the Gateway API that there is; without that API there are none.
func TestFinalizersOfRoutes(t *testing.T) {
	const gateway = "gateway.networking.k8s.io"
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: gateway, Version: "v1"}, {Group: gateway, Version: "v1alpha2"}})
	if kinds, err := finalizedKinds(mapper); err != nil || len(kinds) != len(v1beta1.RecordKinds)+6 {
		t.Errorf("without a Gateway API: %v, error %v", kinds, err)
	}
	want := []schema.GroupVersionKind{
		{Group: gateway, Version: "v1", Kind: "HTTPRoute"}, {Group: gateway, Version: "v1alpha2", Kind: "TLSRoute"},
		{Group: gateway, Version: "v1alpha2", Kind: "TCPRoute"},
	}
	for _, kind := range want {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	kinds, err := finalizedKinds(mapper)
	if err != nil || !slices.Equal(kinds[len(kinds)-3:], want) {
		t.Errorf("%v, error %v", kinds, err)
	}
}

func newFakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// A ClusterBind9Provider gets the instances that Bindy gave to a cluster in its namespace, and none of a tenant who imitates such a cluster:
// that one is named, and holds up nothing.
func TestInnerClusters(t *testing.T) {
	provider := &v1beta1.ClusterBind9Provider{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "provider"}}
	provider.Spec.Namespace = "platform"
	lockstep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lockstep-system", Name: "lockstep-fleet", Labels: map[string]string{
		"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "fleet",
	}}}
	objects := []client.Object{provider, lockstep}
	for _, namespace := range []string{"platform", "tenant"} {
		cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared", UID: types.UID(namespace), Labels: map[string]string{
			v1beta1.ManagedByLabel: "ClusterBind9Provider", v1beta1.ClusterLabel: "shared",
		}}}
		instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared-primary-0"}}
		instance.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "of-others", UID: "other"},
			*metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("Bind9Cluster")),
		}
		objects = append(objects, cluster, instance)
	}
	c := newFakeClient(t, objects...)
	found, err := takeInventory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.lost) != 1 || !strings.Contains(found.lost[0], "Bind9Cluster tenant/shared") {
		t.Errorf("not taken over: %q", found.lost)
	}
	if err := found.dissolveClusters(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for namespace, owner := range map[string]string{"platform": "ClusterBind9Provider", "tenant": "Bind9Cluster"} {
		instance := &v1beta1.Bind9Instance{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shared-primary-0"}, instance); err != nil {
			t.Fatal(err)
		}
		if kind := metav1.GetControllerOf(instance).Kind; kind != owner {
			t.Errorf("the instance in %s is controlled by a %s, want %s", namespace, kind, owner)
		}
		if len(instance.OwnerReferences) != 2 || !slices.ContainsFunc(instance.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == "other" }) {
			t.Errorf("the instance in %s belongs to %v, no more to somebody else's ConfigMap", namespace, instance.OwnerReferences)
		}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shared"}, &v1beta1.Bind9Cluster{})
		if errors.IsNotFound(err) != (namespace == "platform") {
			t.Errorf("the cluster in %s: %v", namespace, err)
		}
	}
}

// An instance that never becomes ready, which anybody can have, keeps its own former server, and no other.
func TestNeverReadyInstanceHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bindys := map[string]string{"app.kubernetes.io/part-of": "bindy", "app.kubernetes.io/name": "bind9"}
		objects := []client.Object{
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lockstep-system", Name: "lockstep-fleet", Labels: map[string]string{
				"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "fleet",
			}}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "never-config", Labels: bindys}},
		}
		for _, namespace := range []string{"team", "tenant"} {
			objects = append(objects, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dns", UID: types.UID("deployment-" + namespace), Labels: bindys}})
			instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dns"}}
			ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}
			if namespace == "tenant" {
				ready.Status, ready.Message = metav1.ConditionFalse, "no such image"
			}
			instance.Status.Conditions = []metav1.Condition{ready}
			objects = append(objects, instance)
		}
		c := newFakeClient(t, objects...)
		found, err := takeInventory(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		o := &options{apply: true, timeout: time.Minute}
		if err := o.takeSteps(t.Context(), c, found, &out); !stderrors.Is(err, ErrStepsLeft) {
			t.Errorf("error %v, output\n%s", err, out.String())
		}
		if !strings.Contains(out.String(), "tenant/dns (the instance is not ready: no such image)") {
			t.Errorf("the output does not say what is left:\n%s", out.String())
		}
		for key, stays := range map[string]client.Object{"team": nil, "tenant": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "never-config"}}} {
			err := c.Get(t.Context(), client.ObjectKey{Namespace: key, Name: "dns"}, &appsv1.Deployment{})
			if (err == nil) != (stays != nil) {
				t.Errorf("the former server in %s: %v", key, err)
			}
			if stays != nil {
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: key, Name: stays.GetName()}, stays); err != nil {
					t.Errorf("what it needs: %v", err)
				}
			}
		}
	})
}
