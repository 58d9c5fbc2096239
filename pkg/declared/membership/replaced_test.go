package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// external-dns replaces the status of a DNSEndpoint that it reads. What the status said about data in a zone that takes the object no more is
// not forgotten, and a pass looks at the object, so that its status is written again.
func TestReplacedStatus(t *testing.T) {
	zone := exampleZone()
	e := endpointOf("shop", "dns")
	e.UID, e.Generation, e.Finalizers = "e", 1, []string{v1beta1.Finalizer}
	e.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: "www.example.com", RecordType: "A", Targets: []string{"192.0.2.1"}}}
	e.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue}}
	e.Status.Zones = []v1alpha1.EndpointZone{{Namespace: "dns", Name: zone.Name, ZoneName: "example.com", RRsets: []string{"www.example.com./A"}}}
	key, wanted := source.KeyOf(e), []Affected{{Zone: KeyOfZone(zone), Object: source.KeyOf(e)}}

	c := NewCache(zone) // It does not admit the namespace any more.
	c.KeepsStatuses = true
	c.SetObject(e)
	for range 2 {
		replaced := e.DeepCopy()
		replaced.Status = v1alpha1.DNSEndpointStatus{ObservedGeneration: 1}
		if diff := cmp.Diff(wanted, c.SetObject(replaced)); diff != "" {
			t.Errorf("affected (-want +got):\n%s", diff)
		}
		if role := c.Member(KeyOfZone(zone), key).Role; role != Leaving {
			t.Errorf("role %v, want Leaving", role)
		}
		if len(replaced.Status.Zones) > 0 {
			t.Error("the object that was given is changed")
		}
	}
	another := e.DeepCopy()
	another.UID, another.Status, another.Finalizers = "another", v1alpha1.DNSEndpointStatus{}, nil
	if c.SetObject(another); c.Member(KeyOfZone(zone), key).Role != NoRole {
		t.Error("another object of that name has the status of the one before")
	}
}
