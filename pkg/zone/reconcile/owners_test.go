package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/ledger"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// newOwner is a Kubernetes cluster that has values of its own on a server.
func newOwner(t testing.TB, id string, outside *bind.Server) *rig {
	r := newBareRig(t)
	p := r.provide("corp", []*bind.Server{outside})
	p.Spec.RFC2136.Writers, p.Spec.RFC2136.Ownership, p.Spec.RFC2136.OwnerID = v1beta1.WritersShared, v1beta1.OwnershipValues, id
	r.scope.servers = serving.AddProviders(nil, []*v1beta1.DNSProvider{p})
	r.primary = []*bind.Server{outside}
	return r
}

// newOwners are two Kubernetes clusters that have values of their own on one server.
func newOwners(t testing.TB, records string) (berlin, paris *rig, outside *bind.Server) {
	outside = bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: records}}})
	return newOwner(t, "berlin", outside), newOwner(t, "paris", outside), outside
}

// hosts are those of the zone.
func (r *rig) hosts() []host.Host {
	s := r.scope
	s.zone = r.zone
	return r.hostsOf(s, &zoneState{})
}

// remove deletes an address record, and has it released.
func (r *rig) remove(a *v1beta1.ARecord) {
	r.t.Helper()
	gone := a.DeepCopy()
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	if p := r.mustSync(); len(p.event.Released) != 1 {
		r.t.Errorf("released: %v", p.event.Released)
	}
}

// withTTL is an address record with a TTL.
func withTTL(a *v1beta1.ARecord, ttl int32) *v1beta1.ARecord {
	a.Spec.TTL = new(int64(ttl))
	return a
}

// isWithoutLedgers demands that a server has no ledger.
func (r *rig) isWithoutLedgers(s *bind.Server) {
	r.t.Helper()
	for set := range r.look(s).All() {
		if ledger.IsBelow(rigZone, set.Name) {
			r.t.Errorf("a ledger is left: %s", set)
		}
	}
}

// Two Kubernetes clusters publish their addresses under one name. Neither corrects the other, both rest, the TTL is the lowest, and whoever
// leaves takes its own values only.
func TestOwnersOfOneName(t *testing.T) {
	berlin, paris, outside := newOwners(t, "app 900 A 192.0.2.99\nother 300 A 192.0.2.98\n")
	inBerlin, inParis := withTTL(berlin.a("app", 1, "192.0.2.1"), 300), withTTL(paris.a("app", 1, "192.0.2.2"), 60)
	berlin.zones.Set(inBerlin)
	berlin.mustSync()
	berlin.holds("app", "192.0.2.1", "192.0.2.99")
	paris.zones.Set(inParis)
	paris.mustSync()
	key := rrset.Key{Name: "app." + rigZone, Type: dns.TypeA}
	serial := berlin.look(outside).SOA.Serial
	for range 2 {
		for _, r := range []*rig{berlin, paris} {
			if p := r.mustSync(); p.event.Drift > 0 || p.event.Foreign != 1 || len(p.event.Contested) > 0 {
				t.Errorf("drift %d, foreign %v, contested %v", p.event.Drift, p.event.ForeignSample, p.event.Contested)
			}
		}
	}
	if p := berlin.pass(); !p.Rested {
		t.Errorf("it does not rest: %+v", p.event)
	}
	has, _ := berlin.look(outside).Get(key)
	if want := rrset.New(key, 60, "192.0.2.1", "192.0.2.2", "192.0.2.99"); !has.Equal(want) || berlin.look(outside).SOA.Serial != serial {
		t.Errorf("the server has %s", has)
	}
	// What somebody takes away comes back, and is drift of whoever owns it.
	berlin.overwrite("app", "192.0.2.97")
	if p := berlin.mustSync(); p.event.Drift != 1 || len(slices.Concat(slices.Collect(maps.Values(p.event.Removed))...)) > 0 {
		t.Errorf("drift %d, removed %v", p.event.Drift, p.event.Removed)
	}
	paris.mustSync()
	berlin.holds("app", "192.0.2.1", "192.0.2.2", "192.0.2.97")
	// A value changes: the former one goes, and no other.
	berlin.zones.Set(withTTL(berlin.a("app", 2, "192.0.2.3"), 300))
	berlin.mustSync()
	berlin.holds("app", "192.0.2.2", "192.0.2.3", "192.0.2.97")
	paris.remove(inParis)
	berlin.mustSync()
	if has, _ = berlin.look(outside).Get(key); !has.Equal(rrset.New(key, 300, "192.0.2.3", "192.0.2.97")) {
		t.Errorf("after Paris has left, the server has %s", has)
	}
	berlin.remove(withTTL(berlin.a("app", 2, "192.0.2.3"), 300))
	berlin.holds("app", "192.0.2.97")
	berlin.isWithoutLedgers(outside)
}

// A value that two have declared stays until the last one gives it up, also if one of them knows nothing of the time before it started.
func TestOwnersOfOneValue(t *testing.T) {
	berlin, paris, outside := newOwners(t, "")
	for _, r := range []*rig{berlin, paris} {
		r.zones.Set(r.a("app", 1, "192.0.2.1"))
		r.mustSync()
	}
	// Berlin has crashed, its object was deleted by force, and nothing but the ledger knows that the value was its own.
	berlin = newOwner(t, "berlin", outside)
	berlin.mustSync()
	berlin.holds("app", "192.0.2.1")
	paris.remove(paris.a("app", 1, "192.0.2.1"))
	paris.holds("app")
	paris.isWithoutLedgers(outside)
}

// Whoever was first keeps an alias, and the other's record names the owner.
func TestOwnersOfAnAlias(t *testing.T) {
	berlin, paris, _ := newOwners(t, "")
	alias := &v1beta1.CNAMERecord{ObjectMeta: berlin.a("app", 1, "192.0.2.1").ObjectMeta}
	alias.Spec.Name, alias.Spec.Target = "app", "elsewhere.example.net."
	berlin.zones.Set(alias)
	berlin.mustSync()
	paris.zones.Set(paris.a("app", 1, "192.0.2.2"))
	key := rrset.Key{Name: "app." + rigZone, Type: dns.TypeA}
	for range 2 {
		p := paris.pass()
		if why := p.event.Unprogrammed[key]; why.Reason != status.Conflict || !strings.Contains(why.Message, "berlin/dns/corp (CNAME)") {
			t.Fatalf("unprogrammed: %v", p.event.Unprogrammed)
		}
	}
	gone := alias.DeepCopy()
	gone.DeletionTimestamp = new(metav1.Now())
	berlin.zones.Set(gone)
	berlin.mustSync()
	paris.mustSync()
	paris.holds("app", "192.0.2.2")
}

// A deleted zone takes its own values only.
func TestOwnerDeletesItsZone(t *testing.T) {
	berlin, paris, outside := newOwners(t, "legacy 300 A 192.0.2.77\n")
	for i, r := range []*rig{berlin, paris} {
		for n := range 20 {
			r.zones.Set(r.a(fmt.Sprintf("n%d", n), 1, fmt.Sprintf("192.0.2.%d", i+1)))
		}
		r.mustSync()
	}
	for i, r := range []*rig{berlin, paris} {
		// While it goes, the other one works.
		hosts := r.hosts()
		var other sync.WaitGroup
		if i == 0 {
			paris.zones.Set(paris.a("n3", 2, "192.0.2.3"))
			other.Go(func() { paris.pass() })
		}
		if err := deleteFromHosts(t.Context(), hosts); err != nil {
			t.Fatal(err)
		}
		if other.Wait(); i == 0 {
			paris.mustSync()
			paris.holds("n0", "192.0.2.2")
			paris.holds("n3", "192.0.2.3")
		}
	}
	paris.holds("n0")
	paris.holds("legacy", "192.0.2.77")
	paris.isWithoutLedgers(outside)
}

// A zone that does not name the provider any more takes its own values, also when the Secrets are gone by then.
func TestOwnerLeavesAProvider(t *testing.T) {
	berlin, paris, outside := newOwners(t, "")
	for i, r := range []*rig{berlin, paris} {
		r.zone = r.zone.DeepCopy()
		r.zone.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}}
		r.zones.Set(r.zone)
		r.zones.Set(r.a("app", 1, fmt.Sprintf("192.0.2.%d", i+1)))
		r.mustSync()
	}
	berlin.zone = berlin.zone.DeepCopy()
	berlin.zone.Spec.ProviderRefs = nil
	berlin.zone.Generation++
	berlin.zones.Set(berlin.zone)
	berlin.scope.providers, berlin.scope.servers = nil, nil
	berlin.pass()
	berlin.holds("app", "192.0.2.2")
	paris.keys.Cache = tsigkey.NewCache(func(context.Context, types.NamespacedName) (*wire.Key, error) { return nil, errors.New("no Secret") }, time.Hour, 0)
	paris.scope.providers, paris.scope.servers = nil, nil
	r := &reconciler{edges: paris.edges}
	left := paris.scope
	left.zone = paris.zone
	if err := deleteFromHosts(t.Context(), r.hostsToClear(left, paris.states.stateOf(paris.zone))); err != nil {
		t.Error(err)
	}
	paris.holds("app")
	paris.isWithoutLedgers(outside)
}

// A zone that has left a provider while no controller ran takes its own values, also if it is deleted by now, unless another zone of that
// name is there.
func TestOwnerLeavesAProviderBeforeAStart(t *testing.T) {
	for name, c := range map[string]struct {
		isDeleted bool
		// others are the providers of other zones of that name, in the order in which they came.
		others [][]string
		want   []string
	}{
		"nobody takes over":               {false, nil, []string{"192.0.2.2"}},
		"the zone is deleted":             {true, nil, []string{"192.0.2.2"}},
		"another zone takes over":         {false, [][]string{{"corp"}}, []string{"192.0.2.1", "192.0.2.2"}},
		"the other zone is nowhere":       {false, [][]string{{"more"}, {"corp", "more"}}, []string{"192.0.2.2"}},
		"so is that beside a deleted one": {true, [][]string{{"more"}, {"corp", "more"}}, []string{"192.0.2.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			berlin, paris, _ := newOwners(t, "")
			for i, r := range []*rig{berlin, paris} {
				r.zones.Set(r.a("app", 1, fmt.Sprintf("192.0.2.%d", i+1)))
				r.mustSync()
			}
			berlin.states.Clear()
			berlin.zone = berlin.zone.DeepCopy()
			berlin.zone.Status.Providers = []v1beta1.ZoneProvider{{Name: "corp"}, {Name: "gone"}}
			berlin.zones.Set(berlin.zone)
			for i, providers := range c.others {
				other := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprint("other", i), CreationTimestamp: metav1.Unix(int64(i+1), 0)}}
				other.UID, other.Spec.ZoneName = types.UID(other.Name), berlin.zone.Spec.ZoneName
				for _, at := range providers {
					other.Spec.ProviderRefs = append(other.Spec.ProviderRefs, v1beta1.ProviderReference{Name: at})
				}
				berlin.zones.Set(other)
			}
			berlin.scope.fleet = membership.NewFleet(membership.FleetObjects{DNSProviders: berlin.scope.providers}, "")
			berlin.scope.providers, berlin.scope.servers = nil, nil
			if c.isDeleted {
				left := berlin.scope
				left.zone = berlin.zone
				if err := deleteFromHosts(t.Context(), berlin.hostsToClear(left, berlin.states.stateOf(berlin.zone))); err != nil {
					t.Error(err)
				}
			} else {
				berlin.pass()
			}
			paris.holds("app", c.want...)
		})
	}
}

// Names of their own become values of their own: what objects declare by then is claimed, and belongs to them from then on.
func TestNamesBecomeValues(t *testing.T) {
	r, outside := newSharedRig(t, "")
	r.zones.Set(r.a("app", 1, "192.0.2.1"))
	r.mustSync()
	p := r.scope.providers[0]
	p.Spec.RFC2136.Ownership, p.Spec.RFC2136.OwnerID = v1beta1.OwnershipValues, "berlin"
	r.scope.servers = serving.AddProviders(nil, []*v1beta1.DNSProvider{p})
	r.mustSync()
	paris := newOwner(t, "paris", outside)
	paris.zones.Set(paris.a("app", 1, "192.0.2.2"))
	paris.mustSync()
	r.holds("app", "192.0.2.1", "192.0.2.2")
	r.remove(r.a("app", 1, "192.0.2.1"))
	r.holds("app", "192.0.2.2")
}

// What happens between a look and an update of one owner, or to its reply, takes no value from anybody.
func TestOwnersAtTheSameTime(t *testing.T) {
	berlin, paris, outside := newOwners(t, "")
	proxy := bind.StartProxy(t, outside.Addr)
	berlin.scope.servers[0].Addr = proxy.Addr
	var lost atomic.Bool
	proxy.Filter(func(network string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if network == "tcp" && m.Unpack(reply) == nil && m.Opcode == dns.OpcodeUpdate && lost.CompareAndSwap(false, true) {
			return nil, bind.ErrHangUp
		}
		return reply, nil
	})
	berlin.updates = meddlerBefore{berlin.updates, sync.OnceFunc(func() {
		paris.zones.Set(paris.a("app", 1, "192.0.2.2"))
		paris.mustSync()
	})}
	berlin.zones.Set(berlin.a("app", 1, "192.0.2.1"))
	if p := berlin.mustSync(); p.event.Drift > 0 || len(p.event.Contested) > 0 {
		t.Errorf("drift %d, contested %v", p.event.Drift, p.event.Contested)
	}
	berlin.holds("app", "192.0.2.1", "192.0.2.2")
	if !lost.Load() {
		t.Error("no reply was lost")
	}
}

// Two Kubernetes clusters declare, change and delete at random, at the same time.
func TestOwnersAtRandom(t *testing.T) {
	berlin, paris, outside := newOwners(t, "n0 900 A 192.0.2.99\n")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"n0", "n1", "n2"}
	all := []*rig{berlin, paris}
	declared := []map[string]*v1beta1.ARecord{{}, {}}
	for step := range 12 {
		for i, owner := range all {
			name := names[r.IntN(len(names))]
			if was := declared[i][name]; was != nil && r.IntN(2) == 0 {
				gone := was.DeepCopy()
				gone.DeletionTimestamp = new(metav1.Now())
				owner.zones.Set(gone)
				delete(declared[i], name)
				continue
			}
			a := withTTL(owner.a(name, int64(step+1), fmt.Sprintf("192.0.2.%d", r.IntN(4))), int32(60*(1+r.IntN(3))))
			declared[i][name] = a
			owner.zones.Set(a)
		}
		var both sync.WaitGroup
		for _, owner := range all {
			both.Go(func() { owner.pass() })
		}
		both.Wait()
	}
	for range 2 {
		for _, owner := range all {
			owner.mustSync()
		}
	}
	for _, name := range names {
		want := map[string]bool{"192.0.2.99": name == "n0"}
		for i := range all {
			if a := declared[i][name]; a != nil {
				want[a.Spec.IPv4Addresses[0]] = true
			}
		}
		maps.DeleteFunc(want, func(_ string, is bool) bool { return !is })
		berlin.holds(name, slices.Sorted(maps.Keys(want))...)
	}
	for i, owner := range all {
		if p := owner.pass(); !p.Rested {
			t.Errorf("owner %d does not rest: %+v", i, p.event)
		}
	}
	for _, owner := range all {
		if err := deleteFromHosts(t.Context(), owner.hosts()); err != nil {
			t.Error(err)
		}
	}
	berlin.holds("n0", "192.0.2.99")
	berlin.holds("n1")
	berlin.isWithoutLedgers(outside)
}

// A guard counts what an owner loses, not what others have, and holds back its own values only.
func TestGuardOfAnOwner(t *testing.T) {
	berlin, paris, _ := newOwners(t, "")
	keep := "app"
	berlin.zone = berlin.zone.DeepCopy()
	berlin.zone.Spec.Guard = &v1beta1.ZoneGuard{NeverEmpty: []string{keep}}
	berlin.kube = &removedAnnotations{}
	berlin.zones.Set(berlin.zone)
	for i, r := range []*rig{berlin, paris} {
		r.zones.Set(r.a(keep, 1, fmt.Sprintf("192.0.2.%d", i+1)))
		r.mustSync()
	}
	gone := berlin.a(keep, 1, "192.0.2.1")
	gone.DeletionTimestamp = new(metav1.Now())
	berlin.zones.Set(gone)
	if p := berlin.pass(); p.event.HeldPlan == "" {
		t.Errorf("nothing is held: %+v", p.event)
	}
	paris.zones.Set(paris.a(keep, 2, "192.0.2.3"))
	paris.mustSync()
	berlin.holds(keep, "192.0.2.1", "192.0.2.3")
	p := berlin.pass()
	berlin.zone = berlin.zone.DeepCopy()
	berlin.zone.Annotations = map[string]string{v1beta1.ConfirmAnnotation: p.event.HeldPlan}
	berlin.zones.Set(berlin.zone)
	berlin.pass()
	berlin.holds(keep, "192.0.2.3")
}

// lookAfter is an update client after whose updates somebody looks at the servers.
type lookAfter struct {
	updateClient
	look func()
}

func (l lookAfter) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	defer l.look()
	return l.updateClient.Apply(ctx, to, changes, have, want)
}

// A zone whose provider is replaced by another one at the same server is served without a gap: its values are claimed anew before the former
// claims go. While the new provider does not take them, they stay.
func TestOwnerChangesTheProvider(t *testing.T) {
	r, _, outside := newOwners(t, "")
	updates := 0
	r.updates = lookAfter{r.updates, func() { updates++; r.holds("app", "192.0.2.1") }}
	nameProvider := func(name string) {
		r.scope.providers, r.scope.servers = nil, nil
		p := r.provide(name, []*bind.Server{outside})
		p.Spec.RFC2136.Writers, p.Spec.RFC2136.Ownership, p.Spec.RFC2136.OwnerID = v1beta1.WritersShared, v1beta1.OwnershipValues, "berlin"
		r.scope.servers = serving.AddProviders(nil, r.scope.providers)
		r.zone = r.zone.DeepCopy()
		r.zone.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: name}}
		r.zone.Generation++
		r.zones.Set(r.zone)
	}
	r.zones.Set(r.a("app", 1, "192.0.2.1"))
	nameProvider("corp")
	r.mustSync()
	nameProvider("next")
	r.setKeys("next", &wire.Key{Name: "unknown.", Algorithm: dns.HmacSHA256, Secret: "c2VjcmV0"}, &outside.Transfer)
	if p := r.pass(); p.event.Programmed.Holds() {
		t.Error("the zone is with a provider that does not take it")
	}
	r.holds("app", "192.0.2.1")
	r.setKeys("next", &outside.Update, &outside.Transfer)
	r.mustSync()
	set, _ := r.look(outside).Get(rrset.Key{Name: "app._lockstep." + rigZone, Type: dns.TypeTXT})
	if len(set.Rdata) != 1 || !strings.Contains(set.Rdata[0], "berlin/dns/next") || updates < 3 {
		t.Errorf("after %d updates, the claims are %s", updates, set)
	}
}

// A provider under another owner, or of another kind, has nobody any more who takes back what the zone has there: it goes when the zone is
// elsewhere. While the provider does not exist, all stays.
func TestOwnerIsNoMore(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.DNSProvider){
		"another owner": func(p *v1beta1.DNSProvider) { p.UID, p.Spec.RFC2136.OwnerID = "again", "london" },
		"another kind": func(p *v1beta1.DNSProvider) {
			p.Spec = v1beta1.DNSProviderSpec{CoreDNS: &v1beta1.CoreDNSProvider{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, paris, outside := newOwners(t, "")
			r.zone = r.zone.DeepCopy()
			r.zone.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}}
			r.zones.Set(r.zone)
			for i, owner := range []*rig{r, paris} {
				owner.zones.Set(owner.a("app", 1, fmt.Sprintf("192.0.2.%d", i+1)))
				owner.mustSync()
			}
			was := r.scope.providers[0]
			set := func(p *v1beta1.DNSProvider) {
				r.scope.providers = []*v1beta1.DNSProvider{p}
				_, servers := r.byBackend(r.scope.providers)
				r.scope.servers = serving.AddProviders(nil, servers)
			}
			r.backends = &fakeBackend{sets: plan.Map{}, ours: map[rrset.Key]bool{}}
			set(&v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "corp"}})
			r.pass()
			r.holds("app", "192.0.2.1", "192.0.2.2")
			next := was.DeepCopy()
			change(next)
			set(next)
			r.pass()
			for set := range r.look(outside).All() {
				if set.Type == dns.TypeTXT && strings.Contains(fmt.Sprint(set.Rdata), "berlin/") {
					t.Errorf("claims are left: %s", set)
				}
			}
			paris.mustSync()
		})
	}
}

// A zone that goes right after a key of its provider was replaced takes its values along: a key that the server refuses is read again for the next
// try.
func TestOwnerLeavesWithAReplacedKey(t *testing.T) {
	for _, replaced := range []string{"corp-update", "corp-transfer"} {
		r, _, outside := newOwners(t, "")
		r.zones.Set(r.a("app", 1, "192.0.2.1"))
		r.mustSync()
		stored := map[string]*wire.Key{"corp-update": &outside.Update, "corp-transfer": &outside.Transfer}
		r.keys.Cache = tsigkey.NewCache(func(_ context.Context, secret types.NamespacedName) (*wire.Key, error) {
			return stored[secret.Name], nil
		}, time.Hour, 0)
		r.keys.Set(types.NamespacedName{Namespace: "dns", Name: replaced}, &wire.Key{Name: "former.", Algorithm: dns.HmacSHA256, Secret: "c2VjcmV0"})
		if err := deleteFromHosts(t.Context(), r.hosts()); err == nil {
			t.Errorf("the server takes a former key of %s", replaced)
		}
		if err := deleteFromHosts(t.Context(), r.hosts()); err != nil {
			t.Errorf("after the key of %s was replaced: %v", replaced, err)
		}
		r.holds("app")
	}
}
