package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// That a zone has come to its servers is recorded, and nothing else of the zone is touched: the cache, which the record is made from, does not
// have all of it.
func TestArrivalsLeaveTheRestOfTheZone(t *testing.T) {
	p := newPlatform(t)
	z := p.declare("team", "example.com", "shared", 0, 1)
	z.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/owner": "jane"}
	z.Labels = map[string]string{"app": "shop"}
	z.Finalizers = append(z.Finalizers, "example.com/keep")
	z.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}}
	z.Status.Serial = new(int64(7))
	if err := p.kube.Update(t.Context(), z); err != nil {
		t.Fatal(err)
	}
	read := func() *v1beta1.DNSZone {
		o := &v1beta1.DNSZone{}
		if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(z), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	want := read()
	cached := want.DeepCopy()
	delete(cached.Annotations, corev1.LastAppliedConfigAnnotation)
	s := scope{zone: cached, arrivals: &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: "cluster/shared", Since: "2026-01-02T00:00:00.000000Z"}}}, comes: true}
	if err := p.recordArrivals(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got := read()
	want.ResourceVersion, want.Status.Arrivals = got.ResourceVersion, s.arrivals
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("more than the arrivals is written (-want +got):\n%s", diff)
	}
}
