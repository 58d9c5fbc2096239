package reconcile

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// removedAnnotations notes the annotations that are removed from objects, and changes none.
type removedAnnotations struct {
	client.Client
	names []string
}

func (r *removedAnnotations) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	text, err := patch.Data(o)
	if err != nil {
		return err
	}
	var changes struct {
		Metadata struct{ Annotations map[string]*string }
	}
	err = json.Unmarshal(text, &changes)
	for name := range changes.Metadata.Annotations {
		r.names = append(r.names, name)
	}
	return err
}

// What the guard holds back never vanishes from a server, whatever else happens: additions go out, the controller starts anew, a primary
// comes back empty. When the plan is confirmed, exactly that goes.
func TestGuardHolds(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.sidecar = addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}
	annotations := &removedAnnotations{}
	r.kube = annotations
	setZone := func(plan, confirmed string) {
		zone := r.zone.DeepCopy()
		zone.Spec.Guard = &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Count: new(int32(2))}}
		zone.Status.HeldPlan = plan
		if confirmed != "" {
			zone.Annotations = map[string]string{v1beta1.ConfirmAnnotation: confirmed}
		}
		r.zone = zone
		r.zones.Set(zone)
	}
	r.zone.Generation++
	setZone("", "")
	var names []string
	for _, name := range []string{"one", "two", "three", "four"} {
		r.zones.Set(r.a(name, 1, "192.0.2.10"))
		names = append(names, name)
	}
	r.settle()
	var stops []func() (asked, empty int)
	for _, name := range names[:3] {
		stops = append(stops, askAlways(t, r.primary[1], name), askAlways(t, r.secondary, name))
	}
	for _, name := range names[:3] {
		r.zones.Set(deleted(r.a(name, 1, "192.0.2.10")))
	}
	r.zones.Set(r.a("new", 1, "192.0.2.11"))
	held := ""
	check := func(what string) {
		t.Helper()
		p := r.pass()
		if p.event.HeldPlan == "" || held != "" && p.event.HeldPlan != held || p.event.Failure.Reason != status.ReasonHeld || len(p.event.Released) > 0 || !p.event.Programmed.Holds() {
			t.Errorf("%s: plan %q after %q, failure %v, released %v, problem %v", what, p.event.HeldPlan, held, p.event.Failure, p.event.Released, p.event.Programmed)
		}
		if want := "kubectl annotate --overwrite dnszone -n dns zone bindy.firestoned.io/confirm=" + p.event.HeldPlan; !strings.HasSuffix(p.event.Guarded.Message, want) {
			t.Errorf("%s: %s", what, p.event.Guarded.Message)
		}
		held = p.event.HeldPlan
		for _, name := range names {
			r.holds(name, "192.0.2.10")
		}
		r.holds("new", "192.0.2.11")
	}
	check("deleted")
	check("at rest")
	setZone(held, "")
	r.states = zoneStates{}
	check("after a restart")
	r.rndc("delzone", "example.test")
	check("a primary comes back empty")
	setZone(held, "0123456789abcdef0123456789abcdef")
	check("another plan is confirmed")
	for _, stop := range stops {
		if asked, empty := stop(); asked == 0 || empty > 0 {
			t.Errorf("%d of %d answers are empty", empty, asked)
		}
	}
	if len(annotations.names) > 0 {
		t.Errorf("annotations %v were removed", annotations.names)
	}
	setZone(held, held)
	if released := r.settle(); len(released) != 3 {
		t.Errorf("released %v", released)
	}
	for i, name := range names {
		if i < 3 {
			r.holds(name)
		} else {
			r.holds(name, "192.0.2.10")
		}
	}
	if len(annotations.names) == 0 || annotations.names[0] != v1beta1.ConfirmAnnotation {
		t.Errorf("annotations %v were removed", annotations.names)
	}
}

// The correction of what somebody else has changed is no loss of the zone.
func TestGuardLetsCorrectionsGoOut(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zone.Generation++
	r.zone.Spec.Guard = &v1beta1.ZoneGuard{Changed: &v1beta1.GuardLimit{Count: new(int32(0))}}
	r.zones.Set(r.zone)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.settle()
	r.byHand(0, "www", "192.0.2.99")
	if p := r.pass(); p.event.HeldPlan != "" {
		t.Errorf("held: %v", p.event.Guarded)
	}
	r.holds("www", "192.0.2.10")
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	if p := r.pass(); p.event.HeldPlan == "" || p.event.Unprogrammed[rrset.Key{Name: "www.example.test.", Type: dns.TypeA}].Reason != status.ReasonHeld {
		t.Errorf("not held: %v", p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.10")
}

// At a name where something is held back, nothing else changes: what is declared there later is not programmed, and what is deleted there is
// not released, although neither is part of the plan.
func TestGuardHoldsBackWhatElseIsAtAName(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zone.Generation++
	r.zone.Spec.Guard = &v1beta1.ZoneGuard{Changed: &v1beta1.GuardLimit{Count: new(int32(0))}}
	r.zones.Set(r.zone)
	text := func(name, value string, generation int64) *v1beta1.TXTRecord {
		record := &v1beta1.TXTRecord{ObjectMeta: r.a(name, generation, "").ObjectMeta}
		record.Spec.Name, record.Spec.Text = "www", []string{value}
		return record
	}
	six := &v1beta1.AAAARecord{ObjectMeta: r.a("six", 1, "").ObjectMeta}
	six.Spec.Name, six.Spec.IPv6Addresses = "www", []string{"2001:db8::1"}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(six)
	r.settle()
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	plan := r.pass().event.HeldPlan

	r.zones.Set(text("text", "hello", 1))
	going := six.DeepCopy()
	going.Generation, going.DeletionTimestamp = 2, new(metav1.Now())
	r.zones.Set(going)
	for range 2 {
		p := r.pass()
		if p.event.HeldPlan != plan || len(p.event.Released) > 0 {
			t.Errorf("plan %q after %q, released %v", p.event.HeldPlan, plan, p.event.Released)
		}
		for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT} {
			key := rrset.Key{Name: "www." + rigZone, Type: rrtype}
			_, there := r.look(r.primary[0]).Get(key)
			if there != (rrtype != dns.TypeTXT) || p.event.Unprogrammed[key].Reason != status.ReasonHeld {
				t.Errorf("%s: there %t, %+v", key, there, p.event.Unprogrammed[key])
			}
		}
	}
	r.zones.Set(r.a("www", 3, "192.0.2.10"))
	if released := r.settle(); len(released) != 1 {
		t.Errorf("released %v", released)
	}
	after := r.look(r.primary[0])
	for rrtype, want := range map[uint16]bool{dns.TypeA: true, dns.TypeAAAA: false, dns.TypeTXT: true} {
		if _, there := after.Get(rrset.Key{Name: "www." + rigZone, Type: rrtype}); there != want {
			t.Errorf("after the hold, %s is there: %t", dns.TypeToString[rrtype], there)
		}
	}
}

// When all primaries have lost the zone, what comes back from a secondary is guarded as well.
func TestGuardHoldsWhatComesFromASecondary(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.sidecar = addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}
	r.zone.Generation++
	r.zone.Spec.Guard = &v1beta1.ZoneGuard{NeverEmpty: []string{"www"}}
	r.zones.Set(r.zone)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.settle()
	r.rndc("delzone", "example.test")
	r.zones.Set(deleted(r.a("www", 1, "192.0.2.10")))
	r.states = zoneStates{}
	if p := r.pass(); p.event.HeldPlan == "" {
		t.Error("nothing is held back")
	}
	r.holds("www", "192.0.2.10")
}

// A backend without an SOA is guarded as servers are.
func TestGuardOfABackend(t *testing.T) {
	p, store := passOverBackend()
	p.scope.zone.Spec.Guard = &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Count: new(int32(0))}}
	p.zones.Set(numbered(1, 1))
	p.zones.Set(numbered(3, 1))
	for range 2 {
		if result, err := p.run(t.Context()); err != nil || result.event.HeldPlan != "" {
			t.Fatalf("plan %q, error %v", result.event.HeldPlan, err)
		}
	}
	p.zones.Set(deleted(numbered(1, 1)))
	for range 3 {
		result, _ := p.run(t.Context())
		if _, there := store.sets[keyOfNumbered("r000001")]; !there || result.event.HeldPlan == "" || len(result.event.Released) > 0 {
			t.Fatalf("plan %q, the backend has %v", result.event.HeldPlan, store.sets)
		}
		p.scope.zone = p.scope.zone.DeepCopy()
		p.scope.zone.Annotations = map[string]string{v1beta1.ConfirmAnnotation: result.event.HeldPlan + "0"}
	}
	p.scope.zone.Annotations[v1beta1.ConfirmAnnotation] = p.state.content.Hold().Plan
	p.kube = &removedAnnotations{}
	if result, err := p.run(t.Context()); err != nil || len(result.event.Released) != 1 || len(store.sets) != 1 {
		t.Errorf("released %v, error %v, left %v", result.event.Released, err, store.sets)
	}
}
