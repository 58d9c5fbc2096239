package content

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
)

// copies is a zone with its objects and what two primaries hold, both in memory.
type copies struct {
	t       testing.TB
	zones   *zonecache.Cache
	zone    *v1beta1.DNSZone
	state   *Zone
	held    [2]map[rrset.Key]rrset.RRset
	soa     rrset.SOA
	mirrors [2]*observe.Mirror
	// foreign is what somebody else put on the servers.
	foreign map[rrset.Key]rrset.RRset
	n       int64
}

func newCopies(t testing.TB) *copies {
	c := &copies{t: t, zones: zonecache.New(), foreign: map[rrset.Key]rrset.RRset{}}
	c.zone = &v1beta1.DNSZone{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "zone", UID: "zone", Generation: 1},
		Spec: v1beta1.DNSZoneSpec{
			ZoneName:    "example.com",
			SOARecord:   v1beta1.SOARecord{PrimaryNS: "ns.example.net.", AdminEmail: "admin.example.com."},
			RecordsFrom: []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"in": "yes"}}}},
		},
	}
	c.zones.Set(c.zone)
	c.state = NewZone()
	for i := range c.held {
		c.held[i] = map[rrset.Key]rrset.RRset{}
	}
	return c
}

// declare does what a pass does before it looks at servers.
func (c *copies) declare() {
	all := !c.state.IsBuiltFor(c.zone, source.Options{})
	if all {
		if err := c.state.Rebuild(c.zone, source.Options{Owns: c.zones.Members.OwnsEndpoints(membership.KeyOfZone(c.zone))}); err != nil {
			c.t.Fatal(err)
		}
	}
	changed, _ := c.zones.Take(membership.KeyOfZone(c.zone), all)
	c.state.Update(changed)
}

func (c *copies) look(i int) *observe.Mirror {
	c.soa.Serial++
	c.mirrors[i] = observe.NewMirror("example.com.", c.soa, slices.Collect(maps.Values(c.held[i]))...)
	return c.mirrors[i]
}

func (c *copies) at(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "dns", Name: fmt.Sprint(i)}
}

// sync brings both servers to what is desired, as a pass does; the first one is the reference. A server that is away is
// left as it is.
func (c *copies) sync(away int) {
	c.declare()
	reference := c.look(0)
	c.state.NoteForeign(c.state.Primary(c.at(0), false, ""), reference)
	if away != 1 {
		c.state.NoteForeign(c.state.Primary(c.at(1), false, ""), c.look(1))
	}
	for i := range c.held {
		if i == away {
			continue
		}
		bottom := reference
		if i == 0 {
			bottom = nil
		}
		p := c.state.Primary(c.at(i), false, "")
		mirror := c.look(i)
		c.state.Compare(p, mirror, bottom)
		c.checkDifference(p, mirror, bottom)
		for set := range outcomeOf(p.difference.Changes(c.state.desired.SOA, c.state.desired.SOA)) {
			if set.Rdata == nil {
				delete(c.held[i], set.Key)
			} else {
				c.held[i][set.Key] = set
			}
		}
		c.state.Compare(p, c.look(i), bottom)
	}
	if away < 0 {
		c.state.ForgetRetired(func(key rrset.Key, shared bool) bool {
			if shared {
				return true
			}
			_, a := c.held[0][key]
			_, b := c.held[1][key]
			return !a && !b
		}, c.soa.Serial, time.Now())
		c.state.SettleForeign(c.mirrors[:])
	}
}

// outcomeOf yields what a server holds after changes; nothing stands for what is deleted.
func outcomeOf(changes plan.Changes) func(func(rrset.RRset) bool) {
	return func(yield func(rrset.RRset) bool) {
		for _, set := range slices.Concat(changes.Create, changes.UpdateNew) {
			if !yield(set) {
				return
			}
		}
		for _, set := range changes.Delete {
			if !yield(rrset.RRset{Key: set.Key}) {
				return
			}
		}
	}
}

// checkDifference compares what was kept up to date with a comparison of everything.
func (c *copies) checkDifference(p *Primary, mirror, bottom *observe.Mirror) {
	c.t.Helper()
	want, owned := c.state.wanted(bottom)
	soa := c.state.desired.SOA
	if diff := cmp.Diff(plan.Calculate(want, mirror, owned, soa, soa), p.difference.Changes(soa, soa), cmpopts.EquateEmpty()); diff != "" {
		c.t.Fatalf("the difference is not that of a comparison of everything (-want +got):\n%s", diff)
	}
}

// check demands that server i holds what is desired and what somebody else put there, and nothing else.
func (c *copies) check(i int, step string) {
	c.t.Helper()
	want := maps.Clone(c.foreign)
	for set := range c.state.desired.All() {
		want[set.Key] = set
	}
	if diff := cmp.Diff(want, c.held[i]); diff != "" {
		c.t.Fatalf("%s: server %d holds (-want +got):\n%s", step, i, diff)
	}
}

func (c *copies) record(r *rand.Rand) *v1beta1.ARecord {
	c.n++
	name := fmt.Sprintf("r%d", r.IntN(6))
	a := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID(name), Generation: c.n, Finalizers: []string{v1beta1.Finalizer},
		Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.com"},
	}}
	if r.IntN(4) > 0 {
		a.Labels = map[string]string{"in": "yes"}
	}
	if r.IntN(5) == 0 {
		now := metav1.Now()
		a.DeletionTimestamp = &now
	}
	a.Spec.Name = fmt.Sprintf("n%d", r.IntN(5))
	a.Spec.IPv4Addresses = []string{fmt.Sprintf("192.0.2.%d", 1+r.IntN(3))}
	return a
}

// meddle is somebody else's change of both servers, at a name that no object ever has, or of data of ours.
func (c *copies) meddle(r *rand.Rand) {
	if r.IntN(2) == 0 {
		set := rrset.RRset{Key: rrset.Key{Name: fmt.Sprintf("f%d.example.com.", r.IntN(3)), Type: 1}, TTL: 60, Rdata: []string{"198.51.100.1"}}
		_, known := c.foreign[set.Key]
		c.foreign[set.Key] = set
		if !known && c.mirrors[1] != nil && c.state.Primary(c.at(1), false, "").mirror.Value() == c.mirrors[1] {
			c.held[r.IntN(2)][set.Key] = set
		}
		return
	}
	for key := range c.state.desired.RRsets.All() {
		delete(c.held[0], key)
		delete(c.held[1], key)
		return
	}
}

func TestServersFollowTheObjectsAndKeepForeignData(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := newCopies(t)
		c.sync(-1)
		for step := range 40 {
			away := -1
			switch r.IntN(8) {
			case 0:
				c.meddle(r)
			case 1:
				c.state.Discard() // All objects are read again.
			case 2:
				c.zone = c.zone.DeepCopy()
				c.zone.Generation++
				c.zones.Set(c.zone)
			case 3:
				away = 1
			}
			for range r.IntN(3) {
				c.zones.Set(c.record(r))
			}
			c.sync(away)
			at := fmt.Sprintf("seed %d, step %d", seed, step)
			c.check(0, at)
			if away < 0 {
				c.check(1, at)
				if n := len(c.state.retired); n != 0 {
					t.Fatalf("%s: %d RRsets are still called ours, and no server holds them", at, n)
				}
			}
		}
	}
}

func TestForeignDataBecomesNobodysByChance(t *testing.T) {
	c := newCopies(t)
	r := rand.New(rand.NewPCG(1, 1))
	a := c.record(r)
	a.DeletionTimestamp, a.Labels, a.Spec.Name = nil, map[string]string{"in": "yes"}, "www"
	c.zones.Set(a)
	c.sync(-1)
	gone := a.DeepCopy()
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	c.zones.Set(gone)
	c.sync(-1)
	released := gone.DeepCopy()
	released.Finalizers = nil
	c.zones.Remove(released)
	theirs := rrset.RRset{Key: rrset.Key{Name: "www.example.com.", Type: 1}, TTL: 60, Rdata: []string{"198.51.100.1"}}
	c.foreign[theirs.Key], c.held[0][theirs.Key], c.held[1][theirs.Key] = theirs, theirs, theirs
	c.sync(-1)
	c.check(0, "a name that was ours once")
	c.check(1, "a name that was ours once")
}

// Pruning leaves the DS of a delegation that is declared, and nothing else that nobody declares.
func TestPruneKeepsDelegationSigner(t *testing.T) {
	c := newCopies(t)
	c.zones.Set(&v1beta1.NSRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "team", UID: "team", Labels: map[string]string{"in": "yes"}},
		Spec:       v1beta1.NSRecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "team"}, Nameserver: "ns.example.org."},
	})
	c.declare()
	c.state.SetPrune(true)
	for key, deletable := range map[rrset.Key]bool{
		{Name: "team.example.com.", Type: dns.TypeDS}: false, {Name: "team.example.com.", Type: dns.TypeTXT}: true, {Name: "gone.example.com.", Type: dns.TypeDS}: true,
	} {
		if got := c.state.isDeletable(key); got != deletable {
			t.Errorf("%s is deletable: %v", key, got)
		}
	}
}
