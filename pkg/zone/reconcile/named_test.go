package reconcile

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// rig runs passes over one zone on real servers, which have the zone already. What Kubernetes would report is set by hand.
type rig struct {
	edges
	t        testing.TB
	observer *observe.Observer
	keys     *keyrotation.Cache
	states   zoneStates
	zone     *v1beta1.DNSZone
	scope    scope
	primary  []*bind.Server
	// secondary takes the zone from any primary.
	secondary *bind.Server
	woken     chan membership.ZoneKey
	// terminating is a namespace that is being deleted.
	terminating string
}

const rigZone = "example.test."

// newRig starts so many primaries, and a secondary of all of them. They have the other zones, too.
func newRig(t testing.TB, primaries int, zone bind.Zone, others ...bind.Zone) *rig {
	r := newBareRig(t)
	zone.Name = rigZone
	zones := append(others, zone)
	secondary := bind.Reserve(t)
	transfer := bind.NewKey("transfer.")
	var more []netip.AddrPort
	for i := range primaries {
		s := bind.Start(t, bind.Options{Zones: zones, AlsoNotify: []netip.AddrPort{secondary}, Transfer: transfer})
		r.primary = append(r.primary, s)
		r.join(v1beta1.RolePrimary, i, s)
		if i > 0 {
			more = append(more, s.Addr)
		}
	}
	r.secondary = bind.Start(t, bind.Options{Role: bind.Secondary, Addr: secondary, Primary: r.primary[0], AlsoPrimaries: more, Zones: zones})
	r.join(v1beta1.RoleSecondary, 0, r.secondary)
	for _, i := range r.scope.instances { // They have it already.
		r.zone.Status.Bind9Instances = append(r.zone.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: i.Namespace, Name: i.Name, Status: v1beta1.ZoneConfigured})
	}
	r.zones.Set(r.zone)
	return r
}

// newBareRig returns a rig without servers.
func newBareRig(t testing.TB) *rig {
	r := &rig{t: t, woken: make(chan membership.ZoneKey, 100), keys: &keyrotation.Cache{Cache: tsigkey.NewCache(nil, time.Hour, 0)}}
	r.edges = edges{
		zones: zonecache.New(), sendNotify: wire.Notify, keys: r.keys, serials: &notify.Serials{}, now: time.Now,
		isTerminating: func(_ context.Context, namespace string) (bool, error) { return namespace == r.terminating, nil },
	}
	r.setTimeout(30 * time.Second) // On a busy machine an answer comes late.
	r.zone = &v1beta1.DNSZone{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "zone", UID: "zone", Generation: 1},
		Spec: v1beta1.DNSZoneSpec{
			ZoneName:      "example.test",
			SOARecord:     v1beta1.SOARecord{PrimaryNS: "ns1.example.test.", AdminEmail: "hostmaster.example.test."},
			NameServerIPs: map[string]string{"ns1.example.test.": "192.0.2.1"},
			RecordsFrom:   []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"in": "yes"}}}},
		},
	}
	r.zones.Set(r.zone)
	return r
}

// peerOf is a server of an instance of the rig.
func peerOf(s *bind.Server) observe.Peer { return observe.Peer{Addr: s.Addr, Namespace: "dns"} }

// expectSilence is called at first by a test in which servers fall silent: passes wait less long for them.
func (r *rig) expectSilence() { r.setTimeout(2 * time.Second) }

func (r *rig) setTimeout(timeout time.Duration) {
	r.observer = observe.New(observe.Options{Timeout: timeout})
	r.dns = unreachable.NewTracker(r.observer, func(z membership.ZoneKey) { r.woken <- z })
	r.sidecar = bindcar.NewClient(bindcar.ClientOptions{Timeout: timeout})
	r.updates = rfc2136.New(rfc2136.Options{Timeout: timeout})
}

func (r *rig) join(role v1beta1.ServerRole, n int, s *bind.Server) {
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprintf("%s-%d", role, n)}}
	i.Spec.Role = role
	i.Status.ServiceAddress = s.Addr.Addr().String()
	r.scope.instances = append(r.scope.instances, i)
	server := observe.Server{Namespace: "dns", Instance: i.Name, Pod: i.Name + "-0", Role: observe.Primary, Addr: s.Addr, PodPhase: "Running"}
	if role == v1beta1.RoleSecondary {
		server.Role = observe.Secondary
	}
	r.scope.servers = append(r.scope.servers, server)
	r.keys.Set(keyrotation.UpdateKeySecret(i), &s.Update)
	r.keys.Set(keyrotation.TransferKeySecret(i), &s.Transfer)
}

func (r *rig) pass() passResult {
	r.t.Helper()
	return r.passOver(membership.KeyOfZone(r.zone))
}

func (r *rig) passOver(key membership.ZoneKey) passResult {
	r.t.Helper()
	result, err := r.tryPass(key)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

func (r *rig) tryPass(key membership.ZoneKey) (passResult, error) {
	s := r.scope
	s.zone = r.zones.Members.Zone(key)
	return zonePass{edges: r.edges, scope: s, state: r.states.stateOf(s.zone)}.run(r.t.Context())
}

// settle makes passes until the secondary has followed, and returns what they released.
func (r *rig) settle() (released []source.Object) {
	r.t.Helper()
	for began := time.Now(); ; {
		p := r.pass()
		released = append(released, p.event.Released...)
		if last := len(p.event.Servers) - 1; p.event.Servers[last].Current {
			return released
		}
		if time.Since(began) > time.Minute {
			r.t.Fatal("the secondary does not follow")
		}
	}
}

// numbered is one of many records of a zone, as admission leaves it; each generation has another address than the first.
func numbered(n, generation int) *v1beta1.ARecord {
	name := fmt.Sprintf("r%06d", n)
	a := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID(name), Generation: int64(generation), Finalizers: []string{v1beta1.Finalizer},
		Labels: map[string]string{"in": "yes"}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"},
	}}
	a.Spec.Name, a.Spec.IPv4Addresses = name, []string{"192.0.2.2"}
	if generation > 1 {
		a.Spec.IPv4Addresses[0] = fmt.Sprintf("192.0.2.%d", 3+generation%200)
	}
	return a
}

// a is an A record of the zone as admission would leave it.
func (r *rig) a(name string, generation int64, address string) *v1beta1.ARecord {
	a := numbered(0, int(generation))
	a.Name, a.UID = name, ""
	a.Spec.Name, a.Spec.IPv4Addresses = name, []string{address}
	return a
}

// holds demands that every primary has these addresses at a name, and all the same serial.
func (r *rig) holds(name string, addresses ...string) {
	r.t.Helper()
	serials := map[uint32]bool{}
	for i, s := range r.primary {
		got := served(r.t, s, name)
		if diff := cmp.Diff(addresses, got); diff != "" {
			r.t.Errorf("primary %d at %s (-want +got):\n%s", i, name, diff)
		}
		serials[r.observer.Serial(r.t.Context(), observe.Peer{Addr: s.Addr}, rigZone, nil).Serial] = true
	}
	if len(serials) != 1 {
		r.t.Errorf("the primaries have several serials: %v", serials)
	}
}

// byHand adds or, with an empty address, removes what is at a name on one primary.
func (r *rig) byHand(primary int, name, address string) {
	r.t.Helper()
	if address != "" {
		r.insert(primary, fmt.Sprintf("%s.%s 60 A %s", name, rigZone, address))
		return
	}
	m := new(dns.Msg)
	m.SetUpdate(rigZone)
	m.RemoveRRset([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name + "." + rigZone, Rrtype: dns.TypeA, Class: dns.ClassINET}}})
	r.update(primary, m)
}

// insert adds records to one primary.
func (r *rig) insert(primary int, records ...string) {
	r.t.Helper()
	m := new(dns.Msg)
	m.SetUpdate(rigZone)
	for _, record := range records {
		rr, err := dns.NewRR(record)
		if err != nil {
			r.t.Fatal(err)
		}
		m.Insert([]dns.RR{rr})
	}
	r.update(primary, m)
}

func (r *rig) update(primary int, m *dns.Msg) {
	r.t.Helper()
	r.primary[primary].SendUpdate(r.t, m)
}

// BenchmarkPass is a whole pass for one changed record in a zone of 100,000 on two primaries and a secondary.
func BenchmarkPass(b *testing.B) {
	const records = 100_000
	var text strings.Builder
	for n := range records {
		fmt.Fprintf(&text, "r%06d 3600 A 192.0.2.2\n", n)
	}
	r := newRig(b, 2, bind.Zone{Records: text.String()})
	for n := range records {
		r.zones.Set(numbered(n, 1))
	}
	began := time.Now()
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		b.Fatal(p.event.Programmed, p.event.Unprogrammed)
	}
	b.Logf("the first pass, which reads the zone from every primary, took %s", time.Since(began))
	n := 1
	for b.Loop() {
		n++
		r.zones.Set(numbered(n*7919%records, n))
		if p := r.pass(); p.event.Changes.Len() != 1 || len(p.event.Unprogrammed) > 0 {
			b.Fatal(p.event.Changes.Len(), p.event.Unprogrammed)
		}
	}
}

// BenchmarkZones is a pass over each of 10,000 zones at rest, of one record each, as many at a time as the controller runs.
func BenchmarkZones(b *testing.B) {
	const zones = 10_000
	var more []bind.Zone
	for n := range zones {
		more = append(more, bind.Zone{Name: fmt.Sprintf("z%05d.test.", n)})
	}
	r := newRig(b, 1, bind.Zone{}, more...)
	var keys []membership.ZoneKey
	for n := range zones {
		zone := r.zone.DeepCopy()
		zone.Name, zone.UID = fmt.Sprint("zone-", n), types.UID(fmt.Sprint(n))
		zone.Spec.ZoneName = strings.TrimSuffix(more[n].Name, ".")
		zone.Spec.SOARecord.PrimaryNS = "ns1." + more[n].Name
		zone.Spec.NameServerIPs = map[string]string{"ns1." + more[n].Name: "192.0.2.1"}
		zone.Spec.RecordsFrom[0].Selector.MatchLabels = map[string]string{"zone": zone.Name}
		r.zones.Set(zone)
		record := r.a("www-"+zone.Name, 1, "192.0.2.10")
		record.Labels, record.Annotations = map[string]string{"zone": zone.Name}, map[string]string{v1beta1.ZoneAnnotation: zone.Spec.ZoneName}
		record.Spec.Name = "www"
		r.zones.Set(record)
		keys = append(keys, membership.KeyOfZone(zone))
	}
	overAll := func() (rested int) {
		var group errgroup.Group
		group.SetLimit(maxPasses)
		var count atomic.Int32
		for _, key := range keys {
			group.Go(func() error {
				if r.passOver(key).Rested {
					count.Add(1)
				}
				return nil
			})
		}
		_ = group.Wait()
		return int(count.Load())
	}
	before := heap()
	began := time.Now()
	overAll()
	b.Logf("the first passes took %s, the state of a zone %d bytes with its mirrors", time.Since(began), (heap()-before)/zones)
	for b.Loop() {
		if n := overAll(); n != zones {
			b.Fatalf("%d of %d zones are at rest", n, zones)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestPassPublishesAndThenRests(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	p := r.pass()
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 || p.Rested || !p.event.All {
		t.Fatalf("the first pass: %+v", p.event)
	}
	r.holds("www", "192.0.2.10")
	if p = r.pass(); !p.Rested || p.event.Changes.Len() > 0 || p.event.All || len(p.event.Touched) > 0 {
		t.Errorf("a second pass does something: %+v", p.event)
	}
	for began := time.Now(); !p.event.Servers[2].Current; p = r.pass() {
		if time.Since(began) > time.Minute {
			t.Fatalf("the secondary does not follow: %+v", p.event.Servers[2])
		}
	}
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	if p = r.pass(); p.event.All || len(p.event.Touched) != 1 || p.event.Changes.Len() != 1 {
		t.Errorf("a pass for one change: all=%v, touched %v, %d changes", p.event.All, p.event.Touched, p.event.Changes.Len())
	}
	r.holds("www", "192.0.2.11")
}

func TestPassUndoesWhatOthersChangeAndKeepsWhatTheyAdd(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	r.byHand(0, "www", "")
	r.byHand(1, "legacy", "192.0.2.99")
	r.byHand(0, "other", "192.0.2.98")
	queue := workqueue.NewTyped[ctrl.Request]()
	r.zones.SetQueue(queue)
	p := r.pass()
	if queue.Len() != 1 {
		t.Error("no further pass counts what is foreign now")
	}
	if p.event.Drift != 1 {
		t.Errorf("drift is %d, want 1", p.event.Drift)
	}
	r.holds("www", "192.0.2.10")
	r.holds("legacy", "192.0.2.99")
	r.holds("other", "192.0.2.98")
	p = r.pass()
	want := []rrset.Key{{Name: "legacy." + rigZone, Type: dns.TypeA}, {Name: "other." + rigZone, Type: dns.TypeA}}
	if diff := cmp.Diff(want, p.event.ForeignSample); diff != "" || p.event.Foreign != 2 {
		t.Errorf("%d foreign RRsets (-want +got):\n%s", p.event.Foreign, diff)
	}
	pruned := r.zone.DeepCopy()
	pruned.Annotations = map[string]string{v1beta1.PruneAnnotation: "true"}
	r.zones.Set(pruned)
	r.pass()
	r.holds("legacy")
	r.holds("other")
	r.holds("www", "192.0.2.10")
}

// What somebody adds to a declared name and type is named when it is taken out; what somebody only takes away has no value to name.
func TestPassNamesTheValuesThatItTakesOut(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(r.a("ftp", 1, "192.0.2.20"))
	r.pass()
	r.byHand(0, "www", "192.0.2.66")
	r.byHand(0, "www", "192.0.2.67")
	r.byHand(0, "ftp", "")
	r.byHand(0, "other", "192.0.2.98")
	p := r.pass()
	want := map[rrset.Key][]string{
		{Name: "www." + rigZone, Type: dns.TypeA}: {"192.0.2.66", "192.0.2.67"},
		{Name: "ftp." + rigZone, Type: dns.TypeA}: nil,
	}
	if diff := cmp.Diff(want, p.event.Removed); diff != "" || p.event.Drift != 2 {
		t.Errorf("drift %d (-want +got):\n%s", p.event.Drift, diff)
	}
	r.holds("www", "192.0.2.10")
	if p = r.pass(); len(p.event.Removed) > 0 {
		t.Errorf("once more: %v", p.event.Removed)
	}

	// A value that an object declares meanwhile is not taken out.
	r.byHand(0, "www", "192.0.2.66")
	more := r.a("www-more", 1, "192.0.2.66")
	more.Spec.Name = "www"
	r.zones.Set(more)
	if p = r.pass(); len(p.event.Removed[rrset.Key{Name: "www." + rigZone, Type: dns.TypeA}]) > 0 {
		t.Errorf("taken out: %v", p.event.Removed)
	}
	r.holds("www", "192.0.2.10", "192.0.2.66")
}

// Somebody else updates both primaries all the time while passes publish records: nothing of either is lost.
// Data that nobody declares is followed from the zone's own servers, and never from one that is selected from elsewhere,
// whichever is ahead.
func TestPassFollowsNoDataOfStrangers(t *testing.T) {
	r := newRig(t, 2, bind.Zone{Serial: 7})
	r.scope.strangers = r.scope.instances[1:2]
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	for range 3 {
		r.byHand(1, "forged", "192.0.2.66")
		r.byHand(1, "www", "")
	}
	r.byHand(0, "friend", "192.0.2.20")
	r.pass()
	r.pass()
	r.holds("forged")
	r.holds("friend", "192.0.2.20")
	r.holds("www", "192.0.2.10")
	if result := r.pass(); !result.Rested {
		t.Error("the zone does not come to rest")
	}

	// Nobody but strangers has a copy, and they are of several namespaces: what is declared is kept.
	r.scope.strangers = r.scope.instances[:2]
	r.byHand(0, "forged", "192.0.2.66")
	r.pass()
	r.pass()
	r.holds("forged")
	r.holds("www", "192.0.2.10")
	if result := r.pass(); !result.Rested {
		t.Error("the zone does not come to rest without servers of its own")
	}
}

func TestPassLosesNothingThatOthersAddMeanwhile(t *testing.T) {
	const count = 60
	r := newRig(t, 2, bind.Zone{})
	r.pass()
	var others sync.WaitGroup
	for primary := range 2 {
		others.Go(func() {
			for n := range count {
				r.byHand(primary, fmt.Sprintf("theirs-%d-%d", primary, n), "192.0.2.99")
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	for n := range count {
		r.zones.Set(r.a(fmt.Sprint("ours-", n), 1, "192.0.2.10"))
		r.pass()
	}
	others.Wait()
	for began := time.Now(); !r.pass().Rested; {
		if time.Since(began) > time.Minute {
			t.Fatal("the passes do not come to rest")
		}
	}
	for n := range count {
		r.holds(fmt.Sprint("ours-", n), "192.0.2.10")
		for primary := range 2 {
			r.holds(fmt.Sprintf("theirs-%d-%d", primary, n), "192.0.2.99")
		}
	}
}

func TestPassOverAPausedZoneOnlyLooks(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	paused := r.zone.DeepCopy()
	paused.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"}
	r.zones.Set(paused)
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	gone := r.a("www", 3, "192.0.2.11")
	now := metav1.Now()
	if p := r.pass(); p.event.Pending != 1 || !p.event.Paused || len(p.event.Unprogrammed) != 1 {
		t.Errorf("%d pending, paused=%v, unprogrammed %v", p.event.Pending, p.event.Paused, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.10")
	gone.DeletionTimestamp = &now
	r.zones.Set(gone)
	if p := r.pass(); len(p.event.Released) > 0 {
		t.Error("a record is let go whose data is on the server")
	}
	r.zones.Set(r.zone)
	if released := r.settle(); len(released) != 1 {
		t.Errorf("released after the pause: %v", released)
	}
	r.holds("www")
}

func TestPassGoesOnWithoutAPrimaryThatIsAway(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.expectSilence()
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	r.primary[1].Pause()
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	p := r.pass()
	if p.event.Programmed.Holds() || p.event.Servers[0].Err != nil || p.event.Servers[1].Err == nil {
		t.Errorf("problem %v, servers %+v", p.event.Programmed, p.event.Servers)
	}
	began := time.Now()
	r.zones.Set(r.a("www", 3, "192.0.2.12"))
	if p = r.pass(); !p.Primaries[1].Seen.At.Before(began) {
		t.Error("a pass asks a server that is known to be away")
	}
	t.Logf("a pass without it took %s", time.Since(began))
	r.primary[1].Resume()
	select {
	case <-r.woken:
	case <-time.After(time.Minute):
		t.Fatal("nobody is told that the primary is back")
	}
	if p := r.pass(); !p.event.Programmed.Holds() {
		t.Errorf("after the primary came back: %v", p.event.Programmed)
	}
	r.holds("www", "192.0.2.12")
}

// Since when a secondary has not answered is known from one pass to the next: it may be back with what it had.
func TestPassReportsSinceWhenASecondaryIsSilent(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.expectSilence()
	silentSince := func() time.Time { return r.pass().event.Servers[1].SilentSince }
	r.settle()
	if since := silentSince(); !since.IsZero() {
		t.Errorf("a secondary that answers is silent since %s", since)
	}
	r.secondary.Pause()
	began := time.Now()
	first := silentSince()
	if second := silentSince(); first.Before(began) || !second.Equal(first) {
		t.Errorf("paused at %s, silent since %s, and since %s in the next pass", began, first, second)
	}
	r.secondary.Resume()
	r.dns.Reset(peerOf(r.secondary))
	if since := silentSince(); !since.IsZero() {
		t.Errorf("a secondary that answers again is silent since %s", since)
	}
}

// Each primary is away while the other one is changed. The serials of the two changes differ, and so do the copies by their serials: also
// that of a server which gets the zone anew.
func TestASerialStandsForOneContent(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.expectSilence()
	r.sidecar = addzone{r.sidecar, r.primary[1], filepath.Join(t.TempDir(), "zone")}
	began := time.Now()
	r.now = func() time.Time { return began } // A serial is the one before plus one.
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.settle()
	away := func(n int, address string) {
		r.primary[n].Pause()
		r.zones.Set(r.a("www", int64(n)+2, address))
		if p := r.pass(); p.event.Programmed.Holds() {
			t.Fatal("a primary that is away is no problem")
		}
		r.primary[n].Resume()
		r.dns.Reset(peerOf(r.primary[n]))
	}
	serialOf := func(n int) uint32 {
		return r.observer.Serial(t.Context(), observe.Peer{Addr: r.primary[n].Addr}, rigZone, nil).Serial
	}
	away(0, "192.0.2.11")
	away(1, "192.0.2.12")
	if first, second := serialOf(1), serialOf(0); first == second {
		t.Errorf("two contents have the serial %d", first)
	}
	if out, err := r.primary[1].Rndc("delzone", "example.test"); err != nil {
		t.Fatal(out, err)
	}
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		t.Errorf("problem %v, unprogrammed %v", p.event.Programmed, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.12")
	r.settle()
	if got := served(t, r.secondary, "www"); !slices.Equal(got, []string{"192.0.2.12"}) {
		t.Errorf("the secondary answers %q", got)
	}
}

func TestPassSendsARefusedRRsetOnce(t *testing.T) {
	r := newRig(t, 1, bind.Zone{Policy: `deny * name refused.example.test. A; grant * zonesub ANY;`})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(r.a("refused", 1, "192.0.2.20"))
	now := time.Now()
	r.now = func() time.Time { return now }
	key := rrset.Key{Name: "refused." + rigZone, Type: dns.TypeA}
	if p := r.pass(); len(p.event.Unprogrammed) != 1 || p.event.Unprogrammed[key].Message == "" {
		t.Fatalf("unprogrammed: %v", p.event.Unprogrammed)
	}
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	p := r.pass()
	if got := p.event.Changes.Len(); got != 1 || len(p.event.Unprogrammed) != 1 {
		t.Errorf("%d RRsets were sent, want the one that changed; unprogrammed: %v", got, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.11")
	now = now.Add(content.RefusalPause)
	if p := r.pass(); p.Rested {
		t.Error("it is not tried again later")
	}
}

func TestPassSaysWhatToDoAboutAKeyThatTheServerDoesNotKnow(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	stranger := bind.NewKey("stranger.")
	r.keys.Set(keyrotation.UpdateKeySecret(r.scope.instances[0]), &stranger)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	p := r.pass()
	for _, part := range []string{"BADKEY", "dns/" + named.UpdateKeySecretName(r.scope.instances[0]), "every minute"} {
		if !strings.Contains(p.event.Programmed.Message, part) {
			t.Errorf("the problem is %q, and does not say %q", p.event.Programmed.Message, part)
		}
	}
	if !host.IsTerminal(p.event.Servers[0].Err) {
		t.Error("the error is taken for one that passes")
	}
}

// meddler is an update client after whose updates somebody else changes the zone as well.
type meddler struct {
	updateClient
	meddle func()
}

func (m meddler) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	result, err := m.updateClient.Apply(ctx, to, changes, have, want)
	m.meddle()
	return result, err
}

// What somebody else undoes between an update and the look at it is drift, and is corrected at once; a pass does not fight
// for ever.
func TestPassCorrectsWhatOthersUndoAfterItsUpdate(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	times := 1
	r.updates = meddler{r.updates, func() {
		if times--; times >= 0 {
			r.byHand(0, "www", "")
		}
	}}
	if p := r.pass(); len(p.event.Unprogrammed) > 0 || p.event.Drift != 1 {
		t.Errorf("unprogrammed %v, drift %d", p.event.Unprogrammed, p.event.Drift)
	}
	r.holds("www", "192.0.2.10")

	times = 1000
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	p := r.pass()
	verdict := p.event.Unprogrammed[rrset.Key{Name: "www." + rigZone, Type: dns.TypeA}]
	if !strings.Contains(verdict.Message, "somebody else") || times != 1000-primary.MaxTries {
		t.Errorf("%d updates, verdict %q", 1000-times, verdict.Message)
	}
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	if after := requeueAfter(p, backoff, inventory.RequestFor(r.zone)); after > time.Second {
		t.Errorf("the next pass comes after %s", after)
	}
	times = 0
	r.pass()
	r.holds("www", "192.0.2.11")
}

// A server that refuses everything is a failure of the zone, in its words. It is asked less and less often, and the failure
// ends with the refusal.
func TestPassReportsThatAServerRefusesTheZone(t *testing.T) {
	for name, c := range map[string]struct {
		policy, reason, words string
		key                   bool
	}{
		"policy":      {policy: "deny * zonesub ANY;", reason: "Refused", words: "answered REFUSED"},
		"unknown key": {key: true, reason: "BadKey", words: "BADKEY"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{Policy: c.policy})
			key := &r.primary[0].Update
			if c.key {
				stranger := bind.NewKey("stranger.")
				key = &stranger
			}
			readKeys := func(update *wire.Key) { // A pass forgets keys that a server refused.
				r.keys.Set(keyrotation.UpdateKeySecret(r.scope.instances[0]), update)
				r.keys.Set(keyrotation.TransferKeySecret(r.scope.instances[0]), &r.primary[0].Transfer)
			}
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
			now := time.Now()
			r.now = func() time.Time { return now }
			var pauses []time.Duration
			for range 8 {
				readKeys(key)
				p := r.pass()
				if p.event.Failure.Reason != c.reason || !strings.Contains(p.event.Failure.Message, c.words) {
					t.Fatalf("failure %+v, problem %v", p.event.Failure, p.event.Programmed)
				}
				pauses = append(pauses, requeueAfter(p, backoff, inventory.RequestFor(r.zone)))
				now = now.Add(time.Hour)
			}
			if pauses[0] > 2*time.Second || !about(pauses[len(pauses)-1], content.RefusalPause) {
				t.Errorf("pauses: %v", pauses)
			}
			if !c.key {
				return
			}
			readKeys(&r.primary[0].Update)
			if p := r.pass(); p.event.Failure.Reason != "" || !p.event.Programmed.Holds() {
				t.Errorf("with the right key: %v", p.event.Programmed)
			}
		})
	}
}

// addzone stands for the sidecar of a server: it adds zones to the real one.
type addzone struct {
	sidecarClient
	server *bind.Server
	file   string
}

func (a addzone) CreateZone(_ context.Context, _ bindcar.Address, zone bindcar.CreateZone) error {
	if err := zonefile.Write(a.file, zone.ZoneName, zone.ZoneConfig); err != nil {
		return err
	}
	_, err := a.server.Rndc("addzone", zone.ZoneName, fmt.Sprintf("{ type primary; file %q; update-policy { grant %q zonesub ANY; }; };", a.file, a.server.Update.Name))
	return err
}

// secondarySidecar stands for the sidecar of a secondary: it deletes and adds zones of the real one. zone has the DNSZone whose data that
// has.
type secondarySidecar struct {
	sidecarClient
	secondary, primary *bind.Server
	zone               bindcar.Zone
}

func (s *secondarySidecar) Zone(context.Context, bindcar.Address, string) (bindcar.Zone, error) {
	return s.zone, nil
}

func (s *secondarySidecar) PatchZone(context.Context, bindcar.Address, string, bindcar.PatchZone) error {
	return nil
}

func (s *secondarySidecar) DeleteZone(_ context.Context, _ bindcar.Address, zone string, _ bindcar.Owner) error {
	s.zone = bindcar.Zone{}
	_, err := s.secondary.Rndc("delzone", zone)
	return err
}

func (s *secondarySidecar) CreateZone(_ context.Context, _ bindcar.Address, zone bindcar.CreateZone) error {
	s.zone = bindcar.Zone{Type: bindcar.Secondary, Owner: zone.Owner, OwnerUID: zone.OwnerUID}
	_, err := s.secondary.Rndc("addzone", zone.ZoneName, fmt.Sprintf("{ type secondary; file %q; primaries { %s port %d key %q; }; };",
		zone.ZoneName+".new", s.primary.Addr.Addr(), s.primary.Addr.Port(), s.primary.Transfer.Name))
	return err
}

// giveOthersZone gives the rig's secondary the zone of another DNSZone, with a name of its own, under a serial.
func (r *rig) giveOthersZone(serial uint32) {
	r.t.Helper()
	file := filepath.Join(r.secondary.Dir, "others")
	text := fmt.Sprintf("$TTL 60\n@ SOA ns1 hostmaster %d 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nlogin A 192.0.2.66\n", serial)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	for _, command := range [][]string{{"delzone", "example.test"}, {"addzone", "example.test", fmt.Sprintf("{ type primary; file %q; };", file)}} {
		if out, err := r.secondary.Rndc(command...); err != nil {
			r.t.Fatal(out, err)
		}
	}
	if got := served(r.t, r.secondary, "login"); len(got) != 1 {
		r.t.Fatalf("the other zone's data is not there: %q", got)
	}
}

// A secondary has the zone of another DNSZone, under the very serial: that is removed with all its data. The zone comes to the secondary
// now, or the secondary was away while the zone was deleted and made again, or comes back beside another pod of its instance that has the zone.
func TestPassRemovesAnotherZoneFromASecondary(t *testing.T) {
	for name, c := range map[string]struct {
		had        bindcar.Zone
		configured bool
	}{
		"another DNSZone":               {had: bindcar.Zone{Owner: "evil/zone"}},
		"a former one of that name":     {had: bindcar.Zone{Owner: "dns/zone", OwnerUID: "former"}},
		"another one, on a former pod":  {had: bindcar.Zone{Owner: "evil/zone", OwnerUID: "evil"}, configured: true},
		"a former one, on a former pod": {had: bindcar.Zone{Owner: "dns/zone", OwnerUID: "former"}, configured: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{})
			sidecar := &secondarySidecar{sidecarClient: r.sidecar, secondary: r.secondary, primary: r.primary[0], zone: c.had}
			r.sidecar = sidecar
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			r.giveOthersZone(r.pass().event.Serial)
			if !c.configured {
				r.zone.Status.Bind9Instances = r.zone.Status.Bind9Instances[:1]
				r.zones.Set(r.zone)
			}
			r.states.Delete(membership.KeyOfZone(r.zone))
			want := bindcar.Zone{Type: bindcar.Secondary, Owner: "dns/zone", OwnerUID: "zone"}
			r.until("the secondary follows with the zone's own data", func(p passResult) bool {
				return p.event.Servers[1].Current && cmp.Equal(sidecar.zone, want)
			})
			if got := served(t, r.secondary, "login"); len(got) > 0 {
				t.Errorf("the secondary answers %q", got)
			}
			if got := served(t, r.secondary, "www"); !slices.Equal(got, []string{"192.0.2.10"}) {
				t.Errorf("the secondary answers %q", got)
			}
			if p := r.pass(); p.event.Foreign > 0 || len(served(t, r.primary[0], "login")) > 0 {
				t.Errorf("%d RRsets are foreign", p.event.Foreign)
			}
		})
	}
}

// A secondary was away while the zone was deleted and made again, and comes back before a primary has the new one: that gets nothing of the
// former one.
func TestANewZoneIsNotMadeOfAFormerOne(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	sidecar := &secondarySidecar{sidecarClient: r.sidecar, secondary: r.secondary, primary: r.primary[0], zone: bindcar.Zone{Owner: "dns/zone", OwnerUID: "former"}}
	r.sidecar = bothSidecars{sidecar, addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}}
	r.giveOthersZone(7)
	r.rndc("delzone", "example.test")
	r.zone.Status.Bind9Instances = nil
	r.zones.Set(r.zone)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.until("the secondary follows", func(p passResult) bool { return p.event.Servers[1].Current })
	r.holds("www", "192.0.2.10")
	r.holds("login")
}

// bothSidecars are those of a secondary and a primary.
type bothSidecars struct {
	*secondarySidecar
	primary addzone
}

func (s bothSidecars) CreateZone(ctx context.Context, to bindcar.Address, zone bindcar.CreateZone) error {
	if zone.ZoneType == bindcar.Primary {
		return s.primary.CreateZone(ctx, to, zone)
	}
	return s.secondarySidecar.CreateZone(ctx, to, zone)
}

// Data that nobody declares is counted again after the only primary has lost the zone and got it back from a secondary.
func TestForeignDataIsCountedAfterTheOnlyPrimaryLostTheZone(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.sidecar = addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.byHand(0, "legacy", "192.0.2.99")
	for began := time.Now(); !r.pass().event.Servers[1].Current; {
		if time.Since(began) > time.Minute {
			t.Fatal("the secondary does not follow")
		}
	}
	if out, err := r.primary[0].Rndc("delzone", "example.test"); err != nil {
		t.Fatal(out, err)
	}
	for range 2 {
		if p := r.pass(); p.event.Foreign != 1 || !p.event.Programmed.Holds() {
			t.Errorf("%d foreign RRsets, problem %v", p.event.Foreign, p.event.Programmed)
		}
	}
	r.holds("legacy", "192.0.2.99")
	r.holds("www", "192.0.2.10")
}

// One of two primaries is away when the other loses the zone, and no secondary answers: data that nobody declares comes back from what
// they held last, and is still there when the other is back.
func TestForeignDataOutlivesBothPrimaries(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.expectSilence()
	r.sidecar = addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.zones.Set(r.a("old", 1, "192.0.2.10"))
	r.byHand(0, "legacy", "192.0.2.99")
	r.settle()
	r.secondary.Stop()
	r.primary[1].Pause()
	gone := r.a("old", 1, "192.0.2.10")
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	r.rndc("delzone", "example.test")
	r.pass()
	if got := served(t, r.primary[0], "legacy"); len(got) != 1 {
		t.Errorf("the primary that lost the zone answers %q", got)
	}
	r.primary[1].Resume()
	r.dns.Reset(peerOf(r.primary[1]))
	for range 2 {
		r.pass()
	}
	r.holds("legacy", "192.0.2.99")
	r.holds("www", "192.0.2.10")
	r.holds("old")
}

// The only primary loses the zone before the secondary has heard that a record was deleted, and gets it back from there, without the
// record. Until the secondary has followed, or has failed to for a while, the object stays: another controller knows by it what was
// ours.
func TestDeletedDataDoesNotComeBackFromASecondary(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.expectSilence()
	r.sidecar = addzone{r.sidecar, r.primary[0], filepath.Join(t.TempDir(), "zone")}
	old := r.a("old", 1, "192.0.2.10")
	r.zones.Set(old)
	r.byHand(0, "legacy", "192.0.2.99")
	r.settle()
	r.secondary.Pause()
	defer r.secondary.Resume()
	gone := old.DeepCopy()
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	if p := r.pass(); len(p.event.Released) > 0 || !p.event.Programmed.Holds() {
		t.Errorf("released although the secondary has its data: %v, %v", p.event.Released, p.event.Programmed)
	}
	r.holds("old")
	r.rndc("delzone", "example.test")
	r.secondary.Resume()
	r.dns.Reset(peerOf(r.secondary))
	if released := r.settle(); len(released) != 1 {
		t.Errorf("released: %v", released)
	}
	r.holds("old")
	r.holds("legacy", "192.0.2.99")
	if got := served(t, r.secondary, "old"); len(got) > 0 {
		t.Errorf("the secondary answers %q", got)
	}
}

// A secondary that never follows does not keep an object for ever.
func TestADeletedObjectWaitsForSecondariesOnlyForAWhile(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zones.Set(r.a("old", 1, "192.0.2.10"))
	r.settle()
	r.secondary.Stop()
	gone := r.a("old", 1, "192.0.2.10")
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	if p := r.pass(); len(p.event.Released) > 0 {
		t.Error("released at once")
	}
	r.now = func() time.Time { return time.Now().Add(releaseTimeout) }
	if p := r.pass(); len(p.event.Released) != 1 {
		t.Errorf("released %v", p.event.Released)
	}
}

// Other data under the serial that the zone had is found when the server has loaded the zone again, and repaired.
func TestPassReadsAZoneThatWasLoadedAgain(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	file := filepath.Join(r.primary[0].Dir, "example.test.zone")
	r.rndc("freeze", "example.test")
	var text []byte
	for began := time.Now(); !strings.Contains(string(text), "192.0.2.10"); { // named writes it after its reply
		if time.Since(began) > time.Minute {
			t.Fatal("the frozen zone is not written")
		}
		text, _ = os.ReadFile(file)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "192.0.2.10", "192.0.2.66")), 0o600); err != nil {
		t.Fatal(err)
	}
	r.rndc("thaw", "example.test")
	for began := time.Now(); !slices.Equal(served(t, r.primary[0], "www"), []string{"192.0.2.66"}); {
		if time.Since(began) > time.Minute {
			t.Fatal("the edited zone is not loaded")
		}
	}
	if p := r.pass(); !p.Rested {
		t.Fatal("the serial has changed: the test needs another fault")
	}
	r.serials.NoteReloaded(membership.KeyOfZone(r.zone), host.IDOf(r.scope.servers[0]))
	if p := r.pass(); p.event.Changes.Len() != 1 || len(p.event.Unprogrammed) > 0 {
		t.Errorf("%d changes, unprogrammed %v", p.event.Changes.Len(), p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.10")
	if !r.pass().Rested {
		t.Error("the zone does not come to rest")
	}
}

func (r *rig) rndc(args ...string) {
	r.t.Helper()
	if out, err := r.primary[0].Rndc(args...); err != nil {
		r.t.Fatal(out, err)
	}
}
