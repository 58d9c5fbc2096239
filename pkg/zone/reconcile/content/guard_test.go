package content

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// guarded is a zone with one server in memory, which gets what the guard lets go out.
type guarded struct {
	*copies
	now    time.Time
	server plan.Map
}

// newGuarded returns a zone whose server has so many records: r000, r001 and so on.
func newGuarded(t *testing.T, records int, guard *v1beta1.ZoneGuard) *guarded {
	g := &guarded{copies: newCopies(t), now: time.Unix(1_700_000_000, 0), server: plan.Map{}}
	g.zone.Spec.Guard = guard
	for i := range records {
		g.zones.Set(labeled(fmt.Sprintf("r%03d", i), "192.0.2.1"))
	}
	g.pass()
	return g
}

func labeled(name, address string) *v1beta1.ARecord {
	a := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID(name), Labels: map[string]string{"in": "yes"},
		Finalizers: []string{v1beta1.Finalizer}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.com"},
	}}
	if a.Generation = 1; address != "192.0.2.1" {
		a.Generation++ // Another address is another version of the spec.
	}
	a.Spec.Name, a.Spec.IPv4Addresses = name, []string{address}
	return a
}

// remove deletes records, from the first to before the last.
func (g *guarded) remove(first, last int) {
	for i := first; i < last; i++ {
		a := labeled(fmt.Sprintf("r%03d", i), "192.0.2.1")
		a.DeletionTimestamp = new(metav1.NewTime(g.now))
		g.zones.Set(a)
	}
}

// pass brings the server along, and returns the plan that is held back.
func (g *guarded) pass() string {
	g.now = g.now.Add(time.Second)
	g.state.SetGuard(GuardOf(g.zone))
	g.declare()
	lacking := g.lacking()
	if want, other := g.state.Review(g.server, lacking, g.now); other {
		if lacking = g.lacking(); want.Len() == 0 {
			g.t.Error("nothing is wanted")
		}
	}
	for _, set := range slices.Concat(lacking.Create, lacking.UpdateNew) {
		g.server[set.Key] = set
	}
	for _, set := range lacking.Delete {
		delete(g.server, set.Key)
	}
	g.state.ForgetRetired(func(key rrset.Key, _ bool) bool { _, there := g.server[key]; return !there }, 1, g.now)
	if again := g.lacking(); again.HasChanges() {
		g.t.Errorf("still lacking %v", again)
	}
	return g.state.Hold().Plan
}

func (g *guarded) lacking() plan.Changes {
	return plan.Calculate(g.state.Wanted(), g.server, g.state.isDeletable, rrset.SOA{}, rrset.SOA{})
}

func (g *guarded) confirm(plan string) {
	g.zone = g.zone.DeepCopy()
	g.zone.Annotations = map[string]string{v1beta1.ConfirmAnnotation: plan}
}

// restart forgets all that is not stored: the controller that follows knows the zone's status and what the server has.
func (g *guarded) restart() {
	g.zone = g.zone.DeepCopy()
	g.zone.Status.HeldPlan = g.state.Hold().Plan
	g.state = NewZone()
}

// expect compares how many records the server has, and how many are held back.
func (g *guarded) expect(records, removed, changed int) {
	g.t.Helper()
	hold := g.state.Hold()
	if got := [...]int{len(g.server) - 1, len(hold.Removed), len(hold.Changed)}; got != [...]int{records, removed, changed} {
		g.t.Errorf("records, held removals and held changes are %v, want %v", got, [...]int{records, removed, changed})
	}
	if (hold.Plan == "") != (removed+changed == 0) {
		g.t.Errorf("plan %q of %d changes", hold.Plan, removed+changed)
	}
}

func (g *guarded) addressOf(name string) string {
	return strings.Join(g.server[rrset.Key{Name: name + ".example.com.", Type: dns.TypeA}].Rdata, ",")
}

// More than half of a zone is held back until the very plan is confirmed; what is added meanwhile goes out.
func TestGuardHoldsUntilConfirmed(t *testing.T) {
	g := newGuarded(t, 100, nil)
	g.remove(0, 60)
	g.zones.Set(labeled("new", "192.0.2.9"))
	held := g.pass()
	g.expect(101, 60, 0)
	if again := g.pass(); again != held {
		t.Errorf("plan %s became %s", held, again)
	}
	g.confirm("0123456789abcdef0123456789abcdef")
	g.pass()
	g.expect(101, 60, 0)
	g.confirm(held)
	g.remove(60, 61)
	if other := g.pass(); other == held {
		t.Error("another plan has the same name")
	}
	g.expect(101, 61, 0)
	g.confirm(g.state.Hold().Plan)
	if !g.state.guard.isConfirmed() && g.state.IsConfirmationDone(func(rrset.Key) bool { return false }) {
		t.Error("done before the pass")
	}
	g.pass()
	g.expect(40, 0, 0)
	if !g.state.IsConfirmationDone(func(rrset.Key) bool { return false }) || g.state.IsConfirmationDone(func(rrset.Key) bool { return true }) {
		t.Error("a confirmation ends when all of it is on the servers, and not before")
	}
	g.remove(61, 62) // What comes later counts by itself.
	g.pass()
	g.expect(39, 0, 0)
}

// What is deleted bit by bit counts as one; after a while it does not.
func TestGuardCountsOverPasses(t *testing.T) {
	g := newGuarded(t, 100, nil)
	for i := range 6 {
		g.remove(10*i, 10*i+10)
		g.pass()
	}
	g.expect(50, 10, 0)
	g.now = g.now.Add(time.Hour) // A hold does not end by itself.
	g.pass()
	g.expect(50, 10, 0)

	g = newGuarded(t, 200, nil)
	g.remove(0, 90)
	g.pass()
	g.now = g.now.Add(guardWindow)
	g.remove(90, 140)
	g.pass()
	g.expect(60, 0, 0)
}

// A controller that starts while a zone is held goes on holding it, whatever share of the zone is left to vanish.
func TestGuardOutlivesRestarts(t *testing.T) {
	g := newGuarded(t, 100, nil)
	for i := range 6 {
		g.remove(10*i, 10*i+10)
		g.pass()
	}
	g.expect(50, 10, 0)
	held := g.state.Hold().Plan
	g.restart()
	if again := g.pass(); again != held {
		t.Errorf("plan %s became %s", held, again)
	}
	g.expect(50, 10, 0)
	g.confirm(held)
	g.restart()
	g.pass()
	g.expect(40, 0, 0)
}

// No data vanishes where it comes back, where another object has it too, or where a value or a TTL is all that is new.
func TestGuardKnowsWhatIsNoLoss(t *testing.T) {
	all := &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Count: new(int32(0))}, Changed: &v1beta1.GuardLimit{Count: new(int32(0))}}
	g := newGuarded(t, 3, all)
	g.remove(0, 1)
	g.pass()
	g.expect(3, 1, 0)
	g.zones.Set(labeled("r000", "192.0.2.1")) // Somebody has put it back.
	g.pass()
	g.expect(3, 0, 0)

	renamed := labeled("other", "192.0.2.1")
	renamed.Spec.Name = "r001"
	g.zones.Set(renamed)
	g.remove(1, 2)
	g.pass()
	g.expect(3, 0, 0)

	more := labeled("r002", "192.0.2.2")
	more.Spec.IPv4Addresses, more.Spec.TTL = []string{"192.0.2.1", "192.0.2.2"}, new(int64(60))
	g.zones.Set(more)
	g.pass()
	g.expect(3, 0, 0)
	if got := g.addressOf("r002"); got != "192.0.2.1,192.0.2.2" {
		t.Errorf("r002 has %s", got)
	}

	g.server = plan.Map{} // A server that comes back empty.
	g.pass()
	g.expect(3, 0, 0)
}

// Each kind of loss has its limit: what is within it goes out while the other one is held back.
func TestGuardLimits(t *testing.T) {
	limit := func(percent, count int32) *v1beta1.GuardLimit {
		l := &v1beta1.GuardLimit{}
		if percent >= 0 {
			l.Percent = &percent
		}
		if count >= 0 {
			l.Count = &count
		}
		return l
	}
	tests := map[string]struct {
		records, removed, changed int
		guard                     *v1beta1.ZoneGuard
		going                     bool
		want                      [2]int
	}{
		"half of a zone":                         {records: 100, removed: 50},
		"more than half":                         {records: 100, removed: 51, want: [2]int{51, 0}},
		"a zone that is small":                   {records: 98, removed: 98}, // With its NS RRset it has 99.
		"changes, which have no limit":           {records: 100, changed: 100},
		"changes beside what is held":            {records: 100, removed: 60, changed: 40, want: [2]int{60, 0}},
		"a zone that is being deleted":           {records: 100, removed: 100, going: true, guard: &v1beta1.ZoneGuard{Removed: limit(-1, 0)}},
		"a number":                               {records: 10, removed: 3, guard: &v1beta1.ZoneGuard{Removed: limit(-1, 2)}, want: [2]int{3, 0}},
		"within a number":                        {records: 10, removed: 2, guard: &v1beta1.ZoneGuard{Removed: limit(-1, 2)}},
		"a number above the percentage":          {records: 9, removed: 2, guard: &v1beta1.ZoneGuard{Removed: limit(10, 5)}, want: [2]int{2, 0}},
		"a percentage above the number":          {records: 9, removed: 2, guard: &v1beta1.ZoneGuard{Removed: limit(90, 1)}, want: [2]int{2, 0}},
		"no limit":                               {records: 100, removed: 100, guard: &v1beta1.ZoneGuard{Removed: limit(100, -1)}},
		"changes alone":                          {records: 10, removed: 1, changed: 3, guard: &v1beta1.ZoneGuard{Changed: limit(-1, 2)}, want: [2]int{0, 3}},
		"both":                                   {records: 10, removed: 3, changed: 3, guard: &v1beta1.ZoneGuard{Removed: limit(-1, 2), Changed: limit(-1, 2)}, want: [2]int{3, 3}},
		"a name that is never empty":             {records: 10, removed: 1, guard: &v1beta1.ZoneGuard{NeverEmpty: []string{"R000"}}, want: [2]int{1, 0}},
		"a complete name that is never empty":    {records: 10, removed: 1, guard: &v1beta1.ZoneGuard{NeverEmpty: []string{"r000.example.com."}}, want: [2]int{1, 0}},
		"a name that is empty, beside another":   {records: 10, removed: 1, guard: &v1beta1.ZoneGuard{NeverEmpty: []string{"r005", "none"}}},
		"a change at a name that is never empty": {records: 10, changed: 10, guard: &v1beta1.ZoneGuard{NeverEmpty: []string{"r005"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t, test.records, test.guard)
			if test.going {
				g.zone = g.zone.DeepCopy()
				g.zone.DeletionTimestamp = new(metav1.NewTime(g.now))
			}
			g.remove(0, test.removed)
			for i := range test.changed {
				g.zones.Set(labeled(fmt.Sprintf("r%03d", test.records-1-i), "192.0.2.2"))
			}
			g.pass()
			g.expect(test.records-test.removed+test.want[0], test.want[0], test.want[1])
			if last := fmt.Sprintf("r%03d", test.records-1); test.changed > 0 && (g.addressOf(last) == "192.0.2.2") != (test.want[1] == 0) {
				t.Errorf("%s has %s", last, g.addressOf(last))
			}
		})
	}
}

// At a name where something is held back nothing is changed: an alias does not come beside the addresses.
func TestGuardHoldsWholeNames(t *testing.T) {
	g := newGuarded(t, 2, &v1beta1.ZoneGuard{NeverEmpty: []string{"r001"}, Removed: &v1beta1.GuardLimit{Count: new(int32(0))}})
	alias := &v1beta1.CNAMERecord{ObjectMeta: labeled("alias", "").ObjectMeta}
	alias.Spec.Name, alias.Spec.Target = "r000", "r001"
	g.zones.Set(alias)
	g.remove(0, 1)
	g.pass()
	g.expect(2, 1, 0)
	if diff := cmp.Diff("192.0.2.1", g.addressOf("r000")); diff != "" {
		t.Error(diff)
	}
	g.confirm(g.state.Hold().Plan)
	g.pass()
	g.expect(2, 0, 0)
	if got := g.addressOf("r000"); got != "" {
		t.Errorf("r000 has %s", got)
	}
}

// What a zone that is pruned would lose is held back, too, and is foreign again when it is not pruned any more.
func TestGuardOfPrunedZones(t *testing.T) {
	g := newGuarded(t, 1, &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Count: new(int32(1))}})
	for _, name := range []string{"a", "b"} {
		key := rrset.Key{Name: name + ".example.com.", Type: dns.TypeA}
		g.server[key] = rrset.RRset{Key: key, TTL: 60, Rdata: []string{"192.0.2.7"}}
	}
	g.state.SetPrune(true)
	g.pass()
	g.expect(3, 2, 0)
	g.pass()
	g.expect(3, 2, 0)
	g.state.SetPrune(false)
	g.pass()
	g.expect(3, 0, 0)
}
