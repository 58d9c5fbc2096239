package reconcile

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A record that moves to another zone waits for a primary that is away, says so, and moves without it in the end. When that
// primary is back it loses the record.
func TestMoveWaitsForASilentPrimaryForAWhile(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.expectSilence()
	www := r.a("www", 1, "192.0.2.10")
	r.zones.Set(www)
	r.pass()
	r.holds("www", "192.0.2.10")

	other := r.zone.DeepCopy()
	other.Name, other.UID, other.Spec.ZoneName = "other", types.UID("other"), "other.test"
	other.Spec.RecordsFrom[0].Selector.MatchLabels = map[string]string{"in": "other"}
	r.zones.Set(other)
	www = www.DeepCopy()
	www.Labels["in"] = "other"
	www.Status.ZoneRef = &v1beta1.ZoneReference{Name: r.zone.Name, Namespace: r.zone.Namespace}
	www.Status.PublishedName, www.Status.Zone = "www.example.test", "example.test"
	r.zones.Set(www)

	now := time.Now()
	r.now = func() time.Time { return now }
	for _, primary := range r.primary {
		primary.Pause()
	}
	r.pass()
	now = now.Add(2 * moveTimeout)
	if p := r.pass(); len(p.event.Released) > 0 || !strings.Contains(p.event.Held[source.KeyOf(www)], "until a primary of that zone answers") {
		t.Errorf("no primary answers: released %v, held %v", p.event.Released, p.event.Held)
	}
	r.primary[0].Resume()
	<-r.woken
	r.states.stateOf(r.zone).failingSince = nil // The second one falls silent now.
	p := r.pass()
	held := p.event.Held[source.KeyOf(www)]
	for _, part := range []string{"dns/other", "primary-1-0", "zone example.test", now.Add(moveTimeout).UTC().Format(time.RFC3339)} {
		if !strings.Contains(held, part) {
			t.Errorf("the record waits because it %q, which does not say %q", held, part)
		}
	}
	if len(p.event.Released) > 0 {
		t.Errorf("released at once: %v", p.event.Released)
	}
	now = now.Add(moveTimeout)
	if p := r.pass(); len(p.event.Released) != 1 || len(p.event.Held) > 0 {
		t.Errorf("released %v, held %v", p.event.Released, p.event.Held)
	}
	r.primary[1].Resume()
	for began := time.Now(); !r.pass().event.Programmed.Holds(); {
		if time.Since(began) > time.Minute {
			t.Fatal("the primary is not taken back")
		}
	}
	r.holds("www")
}
