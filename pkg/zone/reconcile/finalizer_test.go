package reconcile

import (
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// A zone that is deleted waits for its records, unless they are being deleted too or do not matter.
func TestZoneWaitsForItsRecords(t *testing.T) {
	r := newBareRig(t)
	waits := func() bool { return (&reconciler{edges: r.edges}).waitsForDependents(scope{zone: r.zone}) }
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
}

// The time for servers that cannot be reached begins when the zone goes, not when it was deleted.
func TestGoingSince(t *testing.T) {
	var state zoneState
	now := time.Now()
	if state.goingSince(now) != now || state.goingSince(now.Add(time.Hour)) != now {
		t.Error("not the time of the first attempt")
	}
}
