package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// newOutsideRig returns a zone with the records www and mail on a BIND and a Knot that others run.
func newOutsideRig(t *testing.T) *rig {
	r := newBareRig(t)
	b := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone}}})
	k := knot.Start(t, map[string]string{rigZone: ""})
	r.primary = []*bind.Server{b, {Addr: k.Addr, Update: k.Update, Transfer: k.Transfer}}
	r.provide("bind", r.primary[:1])
	r.provide("knot", r.primary[1:])
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(r.a("mail", 1, "192.0.2.11"))
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		t.Fatalf("%+v, %v", p.event.Programmed, p.event.Unprogrammed)
	}
	r.holdsBoth()
	return r
}

// holdsBoth demands that www and mail are where they were.
func (r *rig) holdsBoth() {
	r.t.Helper()
	r.holds("www", "192.0.2.10")
	r.holds("mail", "192.0.2.11")
}

// endsUnchanged makes a pass over the zone, and demands that it changes nothing because of the end of the namespace.
func (r *rig) endsUnchanged() {
	r.t.Helper()
	key := membership.KeyOfZone(r.zone)
	if _, err := r.tryPass(key); !errors.Is(err, errEnding) {
		r.t.Errorf("the pass returns %v", err)
	}
	next := &reconciler{edges: r.edges, writer: statuswriter.NewWriter(statuswriter.Options{}), recoveries: &recoveries{}}
	next.states.Store(key, r.states.stateOf(r.zone))
	next.leaveAsIs(r.t.Context(), scope{zone: r.zone})
	if _, known := next.states.Load(key); !known {
		r.states.Delete(key)
	}
	r.holdsBoth()
}

// Kubernetes deletes what is in a namespace in any order. Whatever goes or changes before its zone, servers of others keep what they have.
func TestNamespaceThatEndsLeavesServersOfOthers(t *testing.T) {
	r := newOutsideRig(t)
	r.terminating = "dns"
	www := deleted(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(www)
	r.endsUnchanged()
	if requests := r.zones.Remove(www); len(requests) != 0 {
		t.Errorf("www was not released: its end asks for %v", requests)
	}
	r.zones.Set(r.a("mail", 2, "192.0.2.99")) // By whoever else learns of the end.
	r.endsUnchanged()
	r.zones.Remove(r.a("mail", 2, "192.0.2.99")) // Somebody has removed the finalizer.
	r.endsUnchanged()
	r.endsUnchanged() // Nothing is left to take, and all is looked at.
}

// The first look is that after a start of the controller, too.
func TestNamespaceThatEndsAfterARestart(t *testing.T) {
	r := newOutsideRig(t)
	r.terminating = "dns"
	r.states.Clear()
	r.zones.Set(deleted(r.a("www", 1, "192.0.2.10")))
	r.endsUnchanged()
}

// What leaves with a namespace whose objects are there again, because somebody has ended its termination by force, is not deleted later.
func TestNamespaceThatStaysAfterAll(t *testing.T) {
	r := newOutsideRig(t)
	r.terminating = "dns"
	www := deleted(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(www)
	r.endsUnchanged()
	r.zones.Remove(www)
	r.terminating = ""
	r.zones.Set(r.a("more", 1, "192.0.2.12"))
	r.pass() // It is as if the zone were seen for the first time.
	if p := r.pass(); !p.event.Programmed.Holds() || p.event.Foreign != 1 {
		t.Errorf("%+v, %d foreign RRsets", p.event.Programmed, p.event.Foreign)
	}
	r.holds("more", "192.0.2.12")
	r.holdsBoth()
}

// The namespace of the zone decides: a zone that stays loses what is deleted elsewhere.
func TestZoneThatStaysLosesWhatIsDeleted(t *testing.T) {
	r := newOutsideRig(t)
	r.terminating = "guests"
	r.zones.Set(deleted(r.a("www", 1, "192.0.2.10")))
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Released) != 1 {
		t.Errorf("%+v, released %v", p.event.Programmed, p.event.Released)
	}
	r.holds("www")
	r.holds("mail", "192.0.2.11")
}

// While it is not known whether the namespace ends, nothing is sent, and nothing is lost.
func TestPassWaitsUntilTheNamespaceIsKnown(t *testing.T) {
	r := newOutsideRig(t)
	known := r.isTerminating
	r.isTerminating = func(context.Context, string) (bool, error) { return false, errNoKubernetes }
	r.zones.Set(deleted(r.a("www", 1, "192.0.2.10")))
	p, err := r.tryPass(membership.KeyOfZone(r.zone))
	if !errors.Is(err, errNoKubernetes) || p.event.Programmed.Holds() || !strings.Contains(p.event.Programmed.Message, "namespace dns") {
		t.Errorf("%v, problem %+v", err, p.event.Programmed)
	}
	r.holdsBoth()
	r.isTerminating = known
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Released) != 1 {
		t.Errorf("%+v, released %v", p.event.Programmed, p.event.Released)
	}
	r.holds("www")
}

// A zone on servers of ours alone goes from them anyway: nobody is asked.
func TestPassOverAZoneOfOursAsksForNoNamespace(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.isTerminating = func(context.Context, string) (bool, error) { return false, errNoKubernetes }
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	r.holds("www", "192.0.2.10")
}
