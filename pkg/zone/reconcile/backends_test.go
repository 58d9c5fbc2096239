package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// fakeBackend is a backend in memory, with the failures that a real one does not have on demand. test/coredns has the real one.
type fakeBackend struct {
	mu   sync.Mutex
	sets plan.Map
	// ours are the RRsets that were written here.
	ours map[rrset.Key]bool
	// away makes everything fail, ignores makes it change nothing.
	away    error
	ignores bool
	// dies makes it away after the next write.
	dies error
	// lost is how many writes get lost.
	lost    int
	follows int
	// unfollowed counts the writes of zones that nobody followed.
	unfollowed int
}

func (f *fakeBackend) Takes(p *v1beta1.DNSProvider) bool { return p.Spec.CoreDNS != nil }

func (f *fakeBackend) Apex() string { return (&coredns.Backend{}).Apex() }

func (f *fakeBackend) Of(context.Context, *v1beta1.DNSProvider) (host.Backend, error) {
	return f, nil
}

func (f *fakeBackend) Follow(_ client.ObjectKey, _ string, in []*v1beta1.DNSProvider, _ func()) {
	f.follows = len(in)
}

func (f *fakeBackend) Followed(client.ObjectKey, client.ObjectKey) host.Backend {
	if f.follows == 0 {
		return nil
	}
	return f
}

func (f *fakeBackend) Check(context.Context, string) error { return f.away }

func (f *fakeBackend) Observe(context.Context, string) (host.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return host.Observation{}, f.away
	}
	ours := maps.Clone(f.ours)
	return host.Observation{Content: maps.Clone(f.sets), Ours: func(k rrset.Key) bool { return ours[k] }}, nil
}

func (f *fakeBackend) Apply(_ context.Context, _ string, changes plan.Changes, _ host.Observation) (host.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows == 0 {
		f.unfollowed++
	}
	f.away, f.dies = f.dies, nil
	if f.lost > 0 {
		f.lost--
		return host.Result{}, fmt.Errorf("%w: %w", host.ErrUnknown, &host.Error{Reason: "Unreachable", Temporary: true, Err: errors.New("request timed out")})
	}
	if f.ignores {
		return host.Result{}, nil
	}
	for _, sets := range [][]rrset.RRset{changes.Create, changes.UpdateNew} {
		for _, set := range sets {
			f.sets[set.Key], f.ours[set.Key] = set, true
		}
	}
	for _, set := range changes.Delete {
		delete(f.sets, set.Key)
	}
	return host.Result{}, nil
}

// Unsupported refuses names that begin with "r000002".
func (f *fakeBackend) Unsupported(_ string, want plan.Content) map[rrset.Key]string {
	reasons := map[rrset.Key]string{}
	for set := range want.All() {
		if strings.HasPrefix(set.Name, "r000002.") {
			reasons[set.Key] = "it cannot hold that"
		}
	}
	return reasons
}

func (f *fakeBackend) Watch(context.Context, string, func()) {}

func (f *fakeBackend) Close() error { return nil }

// passOverBackend returns a pass over a zone that lives at a backend that is no DNS server, and nowhere else.
func passOverBackend() (zonePass, *fakeBackend) {
	store := &fakeBackend{sets: plan.Map{}, ours: map[rrset.Key]bool{}}
	p := passOverFake(&fakePrimary{})
	p.backends = store
	p.isTerminating = func(context.Context, string) (bool, error) { return false, nil }
	p.scope.instances, p.scope.servers = nil, nil
	corp := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "corp", UID: "corp"}}
	corp.Spec.CoreDNS = &v1beta1.CoreDNSProvider{}
	p.scope.providers = []*v1beta1.DNSProvider{corp}
	return p, store
}

func keyOfNumbered(n string) rrset.Key {
	return rrset.Key{Name: n + ".example.test.", Type: dns.TypeA}
}

// A zone may live at a backend without an SOA alone. What that cannot hold is refused by itself, and the apex NS records are the backend's.
func TestBackendHoldsAZone(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	p.zones.Set(numbered(2, 1))
	result, err := p.run(t.Context())
	if err != nil || !result.event.Programmed.Holds() {
		t.Fatalf("problem %v, error %v", result.event.Programmed, err)
	}
	if _, held := store.sets[keyOfNumbered("r000001")]; !held || len(store.sets) != 1 || store.follows != 1 {
		t.Errorf("the backend holds %v and is followed by %d", store.sets, store.follows)
	}
	stuck := result.event.Unprogrammed[keyOfNumbered("r000002")]
	if len(result.event.Unprogrammed) != 1 || stuck.Reason != status.Unsupported || !strings.Contains(stuck.Message, "corp: it cannot hold that") {
		t.Errorf("unprogrammed %v", result.event.Unprogrammed)
	}
}

// What a backend does not show when it is read back is not programmed, and an object is released when its data is gone from there.
func TestBackendIsReadBack(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	store.ignores = true
	if result, _ := p.run(t.Context()); result.event.Unprogrammed[keyOfNumbered("r000001")].Holds() || len(result.event.Unprogrammed) != 1 {
		t.Errorf("unprogrammed %v", result.event.Unprogrammed)
	}
	store.ignores = false
	if result, _ := p.run(t.Context()); len(result.event.Unprogrammed) > 0 {
		t.Errorf("unprogrammed %v", result.event.Unprogrammed)
	}
	gone := numbered(1, 2)
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	p.zones.Set(gone)
	store.ignores = true
	if result, _ := p.run(t.Context()); len(result.event.Released) > 0 {
		t.Error("released although its data is there")
	}
	store.ignores = false
	if result, _ := p.run(t.Context()); len(result.event.Released) != 1 || len(store.sets) > 0 {
		t.Errorf("released %v, left %v", result.event.Released, store.sets)
	}
}

// What cannot be held, or is not answered with, has nothing of an object that is deleted: it does not wait for others that declare the same.
func TestObjectGoesBesideOneThatCannotBeServed(t *testing.T) {
	p, _ := passOverBackend()
	twin := func(n int) *v1beta1.ARecord {
		other := numbered(n, 2)
		other.Name, other.UID = other.Name+"-twin", other.UID+"-twin"
		return other
	}
	apex := func(name string) *v1beta1.NSRecord {
		ns := &v1beta1.NSRecord{ObjectMeta: *numbered(1, 1).ObjectMeta.DeepCopy()}
		ns.Name, ns.UID, ns.Spec.Name, ns.Spec.Nameserver = name, types.UID(name), "@", name+".example.net."
		return ns
	}
	for _, o := range []source.Object{numbered(2, 1), twin(2), apex("ns8"), apex("ns9")} {
		p.zones.Set(o)
	}
	if result, err := p.run(t.Context()); err != nil || len(result.event.Unprogrammed) != 2 {
		t.Fatalf("unprogrammed %v, %v", result.event.Unprogrammed, err)
	}
	gone := apex("ns8")
	gone.DeletionTimestamp = new(metav1.Now())
	p.zones.Set(gone)
	p.zones.Set(deleted(numbered(2, 1)))
	if result, err := p.run(t.Context()); err != nil || len(result.event.Released) != 2 || len(result.event.Unprogrammed) != 2 {
		t.Errorf("released %v, unprogrammed %v, %v", result.event.Released, result.event.Unprogrammed, err)
	}
}

// A write that is lost is made again. If all are, that is what is said, not that somebody else has changed anything, and it is tried again soon.
func TestBackendWhoseWritesAreLost(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	store.lost = 2
	if result, err := p.run(t.Context()); err != nil || !result.event.Programmed.Holds() || len(result.event.Unprogrammed) > 0 {
		t.Errorf("problem %v, unprogrammed %v, error %v", result.event.Programmed, result.event.Unprogrammed, err)
	}
	p.zones.Set(numbered(1, 2))
	store.lost = 1000
	result, err := p.run(t.Context())
	if err != nil || result.event.Programmed.Holds() || !strings.Contains(result.event.Programmed.Message, "request timed out") || result.event.Failure.Reason != "" || !result.isUnreached() {
		t.Errorf("problem %v, failure %v, error %v", result.event.Programmed, result.event.Failure, err)
	}
	store.lost = 0
	if result, err := p.run(t.Context()); err != nil || !result.event.Programmed.Holds() || len(result.event.Unprogrammed) > 0 {
		t.Errorf("problem %v, unprogrammed %v, error %v", result.event.Programmed, result.event.Unprogrammed, err)
	}
}

// A backend that cannot be read back after a write is away: nothing is programmed or released, and the next pass goes on.
func TestBackendThatCannotBeReadBack(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	if _, err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.zones.Set(deleted(numbered(1, 1)))
	store.dies = errors.New("the connection has broken")
	result, err := p.run(t.Context())
	if problem := result.event.Programmed; err != nil || problem.Holds() || !strings.Contains(problem.Message, "the connection has broken") || len(result.event.Released) > 0 {
		t.Errorf("problem %v, released %v, error %v", problem, result.event.Released, err)
	}
	store.away = nil
	if result, err := p.run(t.Context()); err != nil || !result.event.Programmed.Holds() || len(result.event.Released) != 1 {
		t.Errorf("problem %v, released %v, error %v", result.event.Programmed, result.event.Released, err)
	}
}

// A backend that cannot be reached is reported with the remedy, hinders no server, and keeps what leaves from being released.
func TestBackendThatIsAway(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	if result, _ := p.run(t.Context()); !result.event.Programmed.Holds() {
		t.Fatal(result.event.Programmed)
	}
	store.away = &host.Error{Reason: "NoSpace", Remedy: "compact it", Err: errors.New("no space")}
	gone := numbered(1, 2)
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	p.zones.Set(gone)
	result, _ := p.run(t.Context())
	if message := result.event.Programmed.Message; !strings.Contains(message, "corp") || !strings.Contains(message, "no space; compact it") {
		t.Errorf("problem %q", message)
	}
	if result.event.Failure.Reason != "NoSpace" || len(result.event.Released) > 0 || !result.isUnreached() {
		t.Errorf("failure %v, released %v", result.event.Failure, result.event.Released)
	}
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	if after := requeueAfter(result, backoff, ctrl.Request{}); after > lastInterval {
		t.Errorf("it is tried again in %s", after)
	}
}

// What keeps a zone from its servers keeps it from no backend, and nothing is released meanwhile.
func TestBackendBesideServerWithoutAddress(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	corp := p.scope.providers[0]
	servers := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "vm", UID: "vm"}}
	servers.Spec.RFC2136 = &v1beta1.RFC2136Provider{Primaries: []v1beta1.ProviderServer{{Address: "ns.elsewhere.test"}}}
	p.scope.providers = append(p.scope.providers, servers)
	p.scope.servers = serving.AddProviders(nil, []*v1beta1.DNSProvider{servers})
	result, _ := p.run(t.Context())
	if _, held := store.sets[keyOfNumbered("r000001")]; !held || result.event.Programmed.Holds() || len(result.event.Released) > 0 {
		t.Errorf("problem %v, released %v, the backend holds %v", result.event.Programmed, result.event.Released, store.sets)
	}
	if len(result.event.Backends) != 1 || result.event.Backends[0].Provider != corp.Name || result.event.Backends[0].Err != nil {
		t.Errorf("backends %v", result.event.Backends)
	}
}

// A zone that an instance signs is not put into a backend, whose servers would answer without its signatures.
func TestBackendOfASignedZone(t *testing.T) {
	p, store := passOverBackend()
	p.signing = dnssec.Signing{Policy: "default", Signer: &v1beta1.Bind9Instance{}}
	p.zones.Set(numbered(1, 1))
	result, err := p.run(t.Context())
	if err != nil || !errors.Is(result.event.Backends[0].Err, host.ErrSignedHere) || len(store.sets) > 0 {
		t.Errorf("outcomes %+v, error %v, the backend holds %v", result.event.Backends, err, store.sets)
	}
	if problem := result.event.Programmed; problem.Holds() || !strings.Contains(problem.Message, "set dnssecPolicy to none") {
		t.Errorf("problem %+v", problem)
	}
}

// A deleted zone leaves etcd also if its DNSProvider goes first, as it may when their namespace is deleted: at the moment of the first
// write already, the connection is kept for the zone.
func TestBackendOfAProviderThatIsGone(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	if _, err := p.run(t.Context()); err != nil || len(store.sets) != 1 {
		t.Fatalf("%v, the backend holds %v", err, store.sets)
	}
	if store.unfollowed > 0 {
		t.Errorf("%d writes were made while nobody followed the zone", store.unfollowed)
	}
	corp := p.scope.providers[0]
	p.scope.providers = []*v1beta1.DNSProvider{{ObjectMeta: metav1.ObjectMeta{Namespace: corp.Namespace, Name: corp.Name}}}
	p.isTerminating = func(context.Context, string) (bool, error) { return true, nil }
	if _, err := p.run(t.Context()); !errors.Is(err, errEnding) || store.follows != 1 {
		t.Errorf("the pass returns %v, and %d providers are followed", err, store.follows)
	}
	r := &reconciler{edges: p.edges}
	store.away = errors.New("no answer")
	if err := r.clearBackends(t.Context(), p.scope, "example.test."); err == nil || store.follows != 1 {
		t.Errorf("while it is away: %v, %d providers are followed", err, store.follows)
	}
	store.away = nil
	if err := r.clearBackends(t.Context(), p.scope, "example.test."); err != nil || len(store.sets) > 0 {
		t.Errorf("%v, the backend holds %v", err, store.sets)
	}
}

// A zone that goes leaves a backend to another one of its name, unless that goes too.
func TestBackendIsLeftToTheNextZone(t *testing.T) {
	p, store := passOverBackend()
	p.zones.Set(numbered(1, 1))
	if _, err := p.run(t.Context()); err != nil || len(store.sets) != 1 {
		t.Fatalf("%v, the backend holds %v", err, store.sets)
	}
	next := p.zone.DeepCopy()
	next.Name, next.UID = "next", "next"
	next.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: p.scope.providers[0].Name}}
	p.zones.Set(next)
	r := &reconciler{edges: p.edges}
	if err := r.clearBackends(t.Context(), p.scope, "example.test."); err != nil || len(store.sets) != 1 {
		t.Errorf("%v, the backend holds %v", err, store.sets)
	}
	going := next.DeepCopy()
	going.DeletionTimestamp = new(metav1.Now())
	p.zones.Set(going)
	if err := r.clearBackends(t.Context(), p.scope, "example.test."); err != nil || len(store.sets) > 0 {
		t.Errorf("%v, the backend holds %v", err, store.sets)
	}
}

// A zone that loses its permission is deleted from backends that had it, until that has succeeded, also if nothing but its status says that it
// was there; a duplicate stays where others have no part in it. Whatever it is refused for, nothing of it is left there at its end.
func TestBackendOfARefusedZone(t *testing.T) {
	p, store := passOverBackend()
	run := func(reason string, isError bool, left int) statuswriter.SyncCompleted {
		t.Helper()
		if p.refusal = (membership.Refusal{}); reason != "" {
			p.refusal = membership.Refusal{Reason: reason, Message: "no"}
		}
		result, err := p.run(t.Context())
		if (err != nil) != isError || len(store.sets) != left {
			t.Fatalf("%q: %v, the backend holds %v", reason, err, store.sets)
		}
		return result.event
	}
	p.zones.Set(numbered(1, 1))
	run("", false, 1)
	run(status.DuplicateZone, false, 1)
	store.away = errors.New("no answer")
	if event := run(status.NotPermitted, true, 1); len(event.Backends) != 1 || event.Backends[0].Err == nil {
		t.Errorf("outcomes %+v", event.Backends)
	}
	store.away = nil
	run(status.NotPermitted, false, 0)
	run("", false, 1)
	p.state = &zoneState{uid: p.zone.UID, content: content.NewZone()}
	run(status.NotPermitted, false, 1) // Nobody knows that it was there.
	p.zone.Status.Providers = []v1beta1.ZoneProvider{{Name: p.scope.providers[0].Name}}
	run(status.NotPermitted, false, 0)

	run("", false, 1)
	run(status.DuplicateZone, false, 1)
	if err := p.clearHosts(t.Context(), p.scope, p.state); err != nil || len(store.sets) > 0 {
		t.Errorf("%v, the backend holds %v", err, store.sets)
	}
}
