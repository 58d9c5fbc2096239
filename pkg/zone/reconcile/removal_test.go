package reconcile

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// A zone that is deleted waits for its records, unless they are being deleted too or do not matter.
func TestZoneWaitsForItsRecords(t *testing.T) {
	r := newBareRig(t)
	waits := func() bool {
		waits, err := (&reconciler{edges: r.edges}).waitsForDependents(t.Context(), scope{zone: r.zone})
		return waits && err == nil
	}
	if waits() {
		t.Error("waits for nothing")
	}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	if !waits() {
		t.Error("does not wait for a record")
	}
	r.zone.Annotations = map[string]string{v1beta1.AllowDeletionAnnotation: "true"}
	if waits() {
		t.Error("waits although its deletion is allowed")
	}
	r.zone.Annotations = nil
	r.zones.Set(deleted(r.a("www", 1, "192.0.2.10")))
	if waits() {
		t.Error("waits for a record that is being deleted")
	}
	meta := metav1.ObjectMeta{Namespace: "elsewhere", Name: "shop", UID: "shop", Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}}
	r.zone.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "*"}
	r.zones.Set(r.zone.DeepCopy())
	r.zones.Set(aliasOrAddress["DNSEndpoint"](meta, "shop", false))
	if !waits() {
		t.Error("does not wait for a DNSEndpoint of another namespace")
	}
	if r.terminating = r.zone.Namespace; waits() {
		t.Error("waits for another namespace although its own is being deleted")
	}
}

// The time for servers that cannot be reached begins when the zone goes, not when it was deleted.
func TestGoingSince(t *testing.T) {
	var state zoneState
	now := time.Now()
	if state.goingSince(now) != now || state.goingSince(now.Add(time.Hour)) != now {
		t.Error("not the time of the first attempt")
	}
}
