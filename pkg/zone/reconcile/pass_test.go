package reconcile

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
)

// fakePrimary is the edges of a pass to one primary, in memory. It has the failures that a real server does not have on
// demand; what a pass does on real servers is tested beside.
type fakePrimary struct {
	sidecarClient
	// mu guards the rest while a pass runs: it works on several pods at the same time, which may all be this one.
	mu      sync.Mutex
	soa     rrset.SOA
	sets    map[rrset.Key]rrset.RRset
	created int
	updates int
	// ignores makes the server answer NOERROR and change nothing.
	ignores bool
	// interfere runs before an update, as somebody else does, with mu held.
	interfere func()
	// deleted counts deletions of the zone, which fail with deleteErr.
	deleted   int
	deleteErr error
	// owner of the zone that the server has.
	owner bindcar.Owner
	// records are those with which the zone was created last.
	records []bindcar.Record
}

func (f *fakePrimary) Serial(_ context.Context, at observe.Peer, _ unreachable.Zone, _ *wire.Key) observe.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serialLocked(at.Addr)
}

func (f *fakePrimary) serialLocked(at netip.AddrPort) observe.Observation {
	return observe.Observation{Server: at, SOA: f.soa, Serial: f.soa.Serial, Authoritative: f.sets != nil}
}

func (f *fakePrimary) Observe(_ context.Context, at observe.Peer, zone unreachable.Zone, _ *wire.Key) observe.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.serialLocked(at.Addr)
	if f.sets != nil {
		seen.Mirror = observe.NewMirror(zone.Name, f.soa, slices.Collect(maps.Values(f.sets))...)
	}
	return seen
}

func (f *fakePrimary) ObserveAnew(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation {
	return f.Observe(ctx, at, zone, key)
}

func (f *fakePrimary) ObserveNames(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key, _ ...observe.Question) observe.Observation {
	return f.Observe(ctx, at, zone, key)
}

func (f *fakePrimary) Ask(_ context.Context, _ observe.Peer, _ unreachable.Zone, _ *wire.Key, about rrset.Key) (rrset.RRset, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets[about], nil
}

func (f *fakePrimary) ForgetZone(observe.Peer, unreachable.Zone) {}

func (f *fakePrimary) Reset(observe.Peer) {}

func (f *fakePrimary) Apply(_ context.Context, _ rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updates++
	if f.interfere != nil {
		f.interfere()
	}
	if have != f.soa {
		return rfc2136.Result{SOA: have}, host.ErrConflict
	}
	if !f.ignores {
		for _, set := range slices.Concat(changes.Create, changes.UpdateNew) {
			f.sets[set.Key] = set
		}
		for _, set := range changes.Delete {
			delete(f.sets, set.Key)
		}
	}
	f.soa = want
	return rfc2136.Result{SOA: want, Sent: 1}, nil
}

func (f *fakePrimary) Zone(context.Context, bindcar.Address, string) (bindcar.Zone, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bindcar.Zone{Type: bindcar.Primary, Owner: f.owner.Name, OwnerUID: f.owner.UID}, nil
}

func (f *fakePrimary) CreateZone(_ context.Context, _ bindcar.Address, zone bindcar.CreateZone) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created++
	f.owner, f.records = bindcar.Owner{Name: zone.Owner, UID: zone.OwnerUID}, zone.ZoneConfig.Records
	f.soa = rrset.SOA{Serial: zone.ZoneConfig.SOA.Serial}
	return nil
}

func (f *fakePrimary) PatchZone(context.Context, bindcar.Address, string, bindcar.PatchZone) error {
	return nil
}

func (f *fakePrimary) DeleteZone(_ context.Context, _ bindcar.Address, _ string, owner bindcar.Owner) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if owner.IsOther(f.owner) {
		return &bindcar.Error{Code: http.StatusNotFound}
	}
	f.deleted++
	if f.deleteErr == nil {
		f.sets = nil
	}
	return f.deleteErr
}

func (f *fakePrimary) Get(_ context.Context, secret client.ObjectKey) (*wire.Key, error) {
	return &wire.Key{Name: secret.Name + "."}, nil
}

func (f *fakePrimary) Invalidate(client.ObjectKey, *wire.Key) {}

// noKubernetes fails every write of metadata.
type noKubernetes struct{ client.Client }

var errNoKubernetes = errors.New("kube-apiserver is away")

func (noKubernetes) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errNoKubernetes
}

// passOverFake returns a pass over example.test on the primary.
func passOverFake(f *fakePrimary) zonePass {
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "zone", UID: "zone", Generation: 1}}
	zone.Spec.ZoneName = "example.test"
	zone.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.example.net.", AdminEmail: "hostmaster.example.test."}
	zone.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"in": "yes"}}}}
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "primary"}}
	instance.Spec.Role = v1beta1.RolePrimary
	p := zonePass{
		edges: edges{
			kube: noKubernetes{}, zones: zonecache.New(), dns: f, sidecar: f, updates: f, keys: f, serials: &notify.Serials{},
			now: time.Now,
		},
		scope: scope{zone: zone, instances: []*v1beta1.Bind9Instance{instance}, servers: []observe.Server{{
			Namespace: "dns", Instance: "primary", Pod: "primary-0", Role: observe.Primary, PodPhase: "Running", Addr: netip.MustParseAddrPort("192.0.2.53:53"),
		}}},
		state: &zoneState{uid: zone.UID, content: content.NewZone()},
	}
	p.zones.Set(zone)
	return p
}

// An object whose finalizer cannot be written is left out, and comes with the next pass; the others are not held up.
func TestPassSendsNothingOfAnObjectWithoutFinalizer(t *testing.T) {
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
	p := passOverFake(f)
	bare := numbered(1, 1)
	bare.Finalizers = nil
	p.zones.Set(bare)
	p.zones.Set(numbered(2, 1))
	if _, err := p.run(t.Context()); !errors.Is(err, errNoKubernetes) {
		t.Errorf("the pass returns %v", err)
	}
	if has := slices.Collect(maps.Keys(f.sets)); slices.ContainsFunc(has, func(k rrset.Key) bool { return k.Name == "r000001.example.test." }) ||
		!slices.ContainsFunc(has, func(k rrset.Key) bool { return k.Name == "r000002.example.test." }) {
		t.Errorf("the server has %v", has)
	}
	if again, _ := p.zones.Take(p.key(), false); len(again) != 1 || again[0].Key.Name != bare.Name {
		t.Errorf("left for the next pass: %v", again)
	}
}

// An object whose data is out stays there as it is while it lacks a finalizer that cannot be written, also when the zone is built anew.
func TestPassKeepsTheDataOfAnObjectWithoutFinalizer(t *testing.T) {
	key := rrset.Key{Name: "r000001.example.test.", Type: dns.TypeA}
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
	p := passOverFake(f)
	p.zones.Set(numbered(1, 1))
	if _, err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := f.sets[key]
	bare := numbered(1, 2)
	bare.Finalizers = nil
	p.zones.Set(bare)
	p.zone = p.zone.DeepCopy()
	p.zone.Generation++
	p.zone.Spec.SOARecord.Refresh++
	p.zones.Set(p.zone)
	result, err := p.run(t.Context())
	if has := f.sets[key]; !errors.Is(err, errNoKubernetes) || !has.Equal(first) || len(result.event.Unprogrammed) > 0 {
		t.Errorf("the server has %v after %v: %v, unprogrammed %v", has, first, err, result.event.Unprogrammed)
	}
	p.kube = &removedAnnotations{}
	if _, err := p.run(t.Context()); err != nil || slices.Equal(f.sets[key].Rdata, first.Rdata) || len(f.sets[key].Rdata) != 1 {
		t.Errorf("with its finalizer: %v, %v", f.sets[key], err)
	}
}

// A new process knows by its status alone that the data of an object is out. It stays while the object lacks a finalizer that cannot be
// written, also where undeclared data is deleted.
func TestFirstPassKeepsTheDataOfAnObjectWithoutFinalizer(t *testing.T) {
	bare := numbered(1, 1)
	bare.Finalizers = nil
	bare.Status.PublishedName, bare.Status.Zone = "r000001.example.test", "example.test"
	key := rrset.Key{Name: "r000001.example.test.", Type: dns.TypeA}
	t.Run("server", func(t *testing.T) {
		f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
		p := passOverFake(f)
		p.zones.Set(numbered(1, 1))
		if _, err := p.run(t.Context()); err != nil || len(f.sets[key].Rdata) == 0 {
			t.Fatalf("%v, the server has %v", err, f.sets)
		}
		p.state = &zoneState{uid: p.zone.UID, content: content.NewZone()}
		p.zone.Annotations = map[string]string{v1beta1.PruneAnnotation: "true"}
		p.zones.Set(bare)
		for range 2 {
			if result, err := p.run(t.Context()); !errors.Is(err, errNoKubernetes) || len(f.sets[key].Rdata) == 0 || len(result.event.Unprogrammed) > 0 {
				t.Errorf("%v, the server has %v, unprogrammed %v", err, f.sets, result.event.Unprogrammed)
			}
		}
	})
	t.Run("backend", func(t *testing.T) {
		p, store := passOverBackend()
		p.zones.Set(numbered(1, 1))
		if _, err := p.run(t.Context()); err != nil || len(store.sets[key].Rdata) == 0 {
			t.Fatalf("%v, the backend holds %v", err, store.sets)
		}
		p.state = &zoneState{uid: p.zone.UID, content: content.NewZone()}
		p.zones.Set(bare)
		if _, err := p.run(t.Context()); !errors.Is(err, errNoKubernetes) || len(store.sets[key].Rdata) == 0 {
			t.Errorf("%v, the backend holds %v", err, store.sets)
		}
	})
}

// NOERROR is no proof: what the next read does not show is not programmed.
func TestPassReportsWhatItDoesNotReadBack(t *testing.T) {
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}, ignores: true}
	p := passOverFake(f)
	p.zones.Set(numbered(1, 1))
	result, err := p.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, unprogrammed := result.event.Unprogrammed[rrset.Key{Name: "r000001.example.test.", Type: 1}]; !unprogrammed {
		t.Errorf("unprogrammed: %v", result.event.Unprogrammed)
	}
}

// brokenUpdates are updates that come to nothing.
type brokenUpdates struct{}

func (brokenUpdates) Apply(_ context.Context, _ rfc2136.Target, _ plan.Changes, have, _ rrset.SOA) (rfc2136.Result, error) {
	return rfc2136.Result{SOA: have}, errors.New("the network is away")
}

// What a server still has because it could not be changed is no drift, although somebody else has changed the zone meanwhile.
func TestPassTakesWhatItCouldNotChangeForNoDrift(t *testing.T) {
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
	p := passOverFake(f)
	theirs := rrset.RRset{Key: rrset.Key{Name: "theirs.example.test.", Type: 1}, Rdata: []string{"198.51.100.1"}}
	for i, generation := range []int{1, 2, 2} {
		p.zones.Set(numbered(1, generation))
		if p.updates = f; i == 1 {
			p.updates = brokenUpdates{}
		}
		result, err := p.run(t.Context())
		if err != nil || result.event.Programmed.Holds() == (i == 1) || result.event.Drift != 0 {
			t.Errorf("pass %d: %v, problem %v, drift %d", i, err, result.event.Programmed, result.event.Drift)
		}
		f.soa.Serial++
		theirs.TTL++
		f.sets[theirs.Key] = theirs
	}
}

// Somebody else's change between the read and the update is kept: the pass reads again and plans anew.
func TestPassReadsAgainAfterAConflict(t *testing.T) {
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
	theirs := rrset.RRset{Key: rrset.Key{Name: "theirs.example.test.", Type: 1}, TTL: 60, Rdata: []string{"198.51.100.1"}}
	f.interfere = func() {
		f.soa.Serial, f.sets[theirs.Key], f.interfere = f.soa.Serial+1, theirs, nil
	}
	p := passOverFake(f)
	p.zones.Set(numbered(1, 1))
	result, err := p.run(t.Context())
	if err != nil || !result.event.Programmed.Holds() || len(result.event.Unprogrammed) > 0 || f.updates != 2 {
		t.Errorf("%d updates: %v, problem %v, unprogrammed %v", f.updates, err, result.event.Programmed, result.event.Unprogrammed)
	}
	if _, kept := f.sets[theirs.Key]; !kept || result.event.Foreign != 1 {
		t.Errorf("foreign data: kept %t, %d reported", kept, result.event.Foreign)
	}
}

// lateUpdates is an update client that gets no replies until arrive is called: what it was sent reaches the server then.
type lateUpdates struct {
	updateClient
	sent []func()
}

func (l *lateUpdates) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	l.sent = append(l.sent, func() { _, _ = l.updateClient.Apply(ctx, to, changes, have, want) })
	return rfc2136.Result{SOA: have}, host.ErrUnknown
}

func (l *lateUpdates) arrive() {
	for _, send := range l.sent {
		send()
	}
}

// An update whose reply was lost may reach the server after its data was given up: then it changes nothing, since nobody would know whose the
// data is. The object is not released before that is certain.
func TestLostUpdateThatArrivesLate(t *testing.T) {
	key := rrset.Key{Name: "r000002.example.test.", Type: dns.TypeA}
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
	p := passOverFake(f)
	run := func(updates updateClient) passResult {
		t.Helper()
		p.updates = updates
		result, err := p.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	p.zones.Set(numbered(1, 1))
	run(f)
	given := numbered(2, 1)
	p.zones.Set(given)
	late := &lateUpdates{updateClient: f}
	if result := run(late); result.event.Programmed.Holds() || len(late.sent) == 0 {
		t.Fatalf("problem %+v after %d updates", result.event.Programmed, len(late.sent))
	}
	given = given.DeepCopy()
	given.DeletionTimestamp = new(metav1.Now())
	p.zones.Set(given)
	for range 2 { // The second one finds nothing new, and the server as it was.
		if result := run(late); result.event.Programmed.Holds() || len(result.event.Released) > 0 {
			t.Errorf("problem %+v, released %v, while the update may still arrive", result.event.Programmed, result.event.Released)
		}
	}
	if result := run(f); !result.event.Programmed.Holds() || len(result.event.Released) != 1 {
		t.Errorf("problem %+v, released %v", result.event.Programmed, result.event.Released)
	}
	late.arrive()
	if result := run(f); result.event.Foreign != 0 || len(f.sets[key].Rdata) > 0 {
		t.Errorf("the server has %v, %d RRsets are foreign", f.sets[key], result.event.Foreign)
	}
	updates := f.updates
	if run(f); f.updates != updates {
		t.Errorf("%d further updates", f.updates-updates)
	}
}

// The only primary comes back with an older copy: what is declared is corrected, on a serial after all former ones. What was deleted since
// then is nobody's by now, and stays.
func TestOnlyPrimaryWithAnOlderCopy(t *testing.T) {
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{}}
	p := passOverFake(f)
	run := func() passResult {
		t.Helper()
		result, err := p.run(t.Context())
		if err != nil || !result.event.Programmed.Holds() || len(result.event.Unprogrammed) > 0 || result.event.Drift != 0 {
			t.Fatalf("%v, problem %+v, unprogrammed %v, drift %d", err, result.event.Programmed, result.event.Unprogrammed, result.event.Drift)
		}
		return result
	}
	kept, gone := keyOfNumbered("r000001"), keyOfNumbered("r000003")
	p.zones.Set(numbered(1, 1))
	p.zones.Set(numbered(3, 1))
	run()
	backup, soa := maps.Clone(f.sets), f.soa
	p.zones.Set(numbered(1, 2))
	deleted := numbered(3, 1)
	deleted.DeletionTimestamp = new(metav1.Now())
	p.zones.Set(deleted)
	run()
	declared, last := f.sets[kept], f.soa.Serial
	f.sets, f.soa = backup, soa
	result := run()
	if has := f.sets[kept]; !has.Equal(declared) || !rrset.SerialLess(last, f.soa.Serial) {
		t.Errorf("the server has %v on serial %d after %d, want %v", has, f.soa.Serial, last, declared)
	}
	if len(f.sets[gone].Rdata) == 0 || result.event.Foreign != 1 {
		t.Errorf("the server has %v, %d RRsets are foreign", f.sets[gone], result.event.Foreign)
	}
}

// A new process knows the last serial by the zone's status: no primary begins before it, whatever time it is, nor uses it again.
func TestSerialsGoOnAfterAStart(t *testing.T) {
	const last = 2026112650 // It counts the changes of a day, and is later than the time.
	for name, f := range map[string]*fakePrimary{
		"the zone is lost":                  {},
		"an older copy":                     {sets: map[rrset.Key]rrset.RRset{}, soa: rrset.SOA{Serial: last - 10}},
		"a copy that lacks the last change": {sets: map[rrset.Key]rrset.RRset{}, soa: rrset.SOA{Serial: last - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := passOverFake(f)
			p.zone.Status.Serial = new(int64(last))
			p.zones.Set(numbered(1, 1))
			if _, err := p.run(t.Context()); err != nil || f.soa.Serial != last+1 {
				t.Errorf("serial %d after %d: %v", f.soa.Serial, last, err)
			}
		})
	}
}

// A primary without the zone gets the whole of it in one request and, while it has not loaded it, nothing more.
func TestPassGivesAnEmptyPrimaryTheZoneOnce(t *testing.T) {
	f := &fakePrimary{}
	p := passOverFake(f)
	p.zones.Set(numbered(1, 1))
	result, err := p.run(t.Context())
	if err != nil || result.event.Programmed.Holds() || f.created != 1 || f.updates != 0 {
		t.Errorf("created %d times, %d updates: %v, problem %v", f.created, f.updates, err, result.event.Programmed)
	}
}

// countedKeys counts how often a key is asked for.
type countedKeys struct {
	host.KeySource
	asked int
}

func (k *countedKeys) Get(context.Context, client.ObjectKey) (*wire.Key, error) {
	k.asked++
	return nil, errors.New("nobody has granted it yet")
}

// Keys of a server that has no address yet are not asked for: a new instance's may be granted a moment later, and the
// refusal would be remembered.
func TestPassAsksForNoKeyBeforeItsServerHasAnAddress(t *testing.T) {
	p, keys := passOverFake(&fakePrimary{}), &countedKeys{}
	p.keys = keys
	p.hosts = p.hostsOf(p.scope, p.state)
	if q := p.overPrimaries().Find(t.Context()); keys.asked != 2 || q[0].Err == nil {
		t.Errorf("keys of a server with an address were asked for %d times", keys.asked)
	}
	p.servers[0].Addr = netip.AddrPort{}
	p.hosts = p.hostsOf(p.scope, p.state)
	if q := p.overPrimaries().Find(t.Context()); keys.asked != 2 || q[0].Err == nil {
		t.Errorf("keys were asked for %d times: %v", keys.asked, q[0].Err)
	}
}

// A zone that loses its permission is deleted from the servers that had it, until that has succeeded; one that never had it is
// sent nothing, and a duplicate leaves the name to the zone that is served.
func TestPassWithdrawsWhatIsNotPermitted(t *testing.T) {
	f := &fakePrimary{}
	p := passOverFake(f)
	run := func(refusal membership.Refusal) statuswriter.SyncCompleted {
		t.Helper()
		p.refusal = refusal
		result, err := p.run(t.Context())
		if err != nil || result.event.Programmed.Reason != refusal.Reason {
			t.Fatalf("problem %+v, %v", result.event.Programmed, err)
		}
		return result.event
	}
	notPermitted, duplicate := membership.Refusal{Reason: status.NotPermitted, Message: "no"}, membership.Refusal{Reason: status.DuplicateZone, Message: "no"}
	if run(notPermitted); f.created != 0 || f.deleted != 0 {
		t.Fatalf("created %d times, deleted %d times, want neither", f.created, f.deleted)
	}
	p.refusal = membership.Refusal{}
	if _, err := p.run(t.Context()); err != nil || f.created != 1 {
		t.Fatalf("created %d times: %v", f.created, err)
	}
	if run(duplicate); f.deleted != 0 {
		t.Fatal("a duplicate was deleted")
	}
	f.deleteErr = errors.New("no answer")
	if event := run(notPermitted); f.deleted != 1 || len(event.Servers) != 1 || event.Servers[0].Err == nil {
		t.Fatalf("deleted %d times, outcomes %+v", f.deleted, event.Servers)
	}
	f.deleteErr = nil
	if event := run(notPermitted); f.deleted != 2 || len(event.Servers) != 0 {
		t.Fatalf("deleted %d times, outcomes %+v", f.deleted, event.Servers)
	}
	if run(notPermitted); f.deleted != 2 {
		t.Errorf("deleted %d times, want 2", f.deleted)
	}
	// After a restart the status remembers.
	p.zone.Status.Bind9Instances = []v1beta1.ZoneInstance{{Namespace: "dns", Name: "primary"}}
	if run(notPermitted); f.deleted != 3 {
		t.Errorf("deleted %d times, want 3", f.deleted)
	}
}

// A zone that was withdrawn, and may be served again, begins anew: what somebody had added does not come back from memory.
func TestPassForgetsWhatAWithdrawnZoneHeld(t *testing.T) {
	theirs := rrset.RRset{Key: rrset.Key{Name: "theirs.example.test.", Type: dns.TypeA}, TTL: 60, Rdata: []string{"198.51.100.1"}}
	f := &fakePrimary{sets: map[rrset.Key]rrset.RRset{theirs.Key: theirs}, owner: bindcar.Owner{Name: "dns/zone"}}
	p := passOverFake(f)
	second := p.servers[0]
	second.Pod = "primary-1"
	p.servers = append(p.servers, second)
	run := func(refusal membership.Refusal) {
		t.Helper()
		p.refusal = refusal
		if _, err := p.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	run(membership.Refusal{})
	isTheirs := func(r bindcar.Record) bool { return r.Name == theirs.Name }
	f.sets = nil
	if run(membership.Refusal{}); !slices.ContainsFunc(f.records, isTheirs) {
		t.Errorf("a zone that was lost comes back with %v", f.records)
	}
	run(membership.Refusal{Reason: status.NotPermitted, Message: "no"})
	if run(membership.Refusal{}); slices.ContainsFunc(f.records, isTheirs) {
		t.Errorf("a zone that was withdrawn comes back with %v", f.records)
	}
}

// A zone that comes to a server which still has the data of another DNSZone begins anew there: nothing of that data is followed. Data
// of its own, of nobody known, or on a server that its status lists stays, unless the server is one of several of its instance.
func TestPassTakesOverNoDataOfAnotherZone(t *testing.T) {
	left := rrset.RRset{Key: rrset.Key{Name: "login.example.test.", Type: dns.TypeA}, TTL: 60, Rdata: []string{"192.0.2.66"}}
	for name, c := range map[string]struct {
		owner   string
		listed  v1beta1.ZoneInstance
		paused  bool
		deleted int
		pods    int32
	}{
		"another zone's":             {"evil/zone", v1beta1.ZoneInstance{}, false, 1, 1},
		"another of the namespace's": {"dns/other", v1beta1.ZoneInstance{}, false, 1, 1},
		"its own":                    {"dns/zone", v1beta1.ZoneInstance{}, false, 0, 1},
		"nobody's":                   {"", v1beta1.ZoneInstance{}, false, 0, 1},
		"on a server of its own":     {"evil/zone", v1beta1.ZoneInstance{Namespace: "dns", Name: "primary", Status: v1beta1.ZoneConfigured}, false, 0, 1},
		"its own is another server":  {"evil/zone", v1beta1.ZoneInstance{Namespace: "dns", Name: "secondary", Status: v1beta1.ZoneConfigured}, false, 1, 1},
		"its own is elsewhere":       {"evil/zone", v1beta1.ZoneInstance{Namespace: "evil", Name: "primary", Status: v1beta1.ZoneConfigured}, false, 1, 1},
		"it was never there":         {"evil/zone", v1beta1.ZoneInstance{Namespace: "dns", Name: "primary", Status: v1beta1.ZoneFailed}, false, 1, 1},
		"one of several pods has it": {"evil/zone", v1beta1.ZoneInstance{Namespace: "dns", Name: "primary", Status: v1beta1.ZoneConfigured}, false, 1, 2},
		"paused":                     {"evil/zone", v1beta1.ZoneInstance{}, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakePrimary{owner: bindcar.Owner{Name: c.owner}, soa: rrset.SOA{Serial: 1}, sets: map[rrset.Key]rrset.RRset{left.Key: left}}
			p := passOverFake(f)
			p.instances[0].Spec.Replicas = &c.pods
			if c.listed.Name != "" {
				p.zone.Status.Bind9Instances = []v1beta1.ZoneInstance{c.listed}
			}
			if c.paused {
				p.zone.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"}
			}
			result, err := p.run(t.Context())
			if err != nil || f.deleted != c.deleted || f.created != c.deleted {
				t.Fatalf("deleted %d times, created %d times, %v, want %d", f.deleted, f.created, err, c.deleted)
			}
			if c.deleted > 0 && f.owner.Name != "dns/zone" {
				t.Errorf("the new zone belongs to %q", f.owner)
			}
			_, kept := f.sets[left.Key]
			if kept == (c.deleted > 0) || result.event.Foreign > 0 == (c.deleted > 0 || c.paused) {
				t.Errorf("kept: %t, %d RRsets are foreign", kept, result.event.Foreign)
			}
			if c.paused && !strings.Contains(result.event.Programmed.Message, "data of another DNSZone") {
				t.Errorf("problem %+v", result.event.Programmed)
			}
		})
	}
}
