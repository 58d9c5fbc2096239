package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	hostsecondary "github.com/lockstep-dns/lockstep/pkg/zone/host/secondary"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// provide adds a DNSProvider with primaries and secondaries that nobody here runs: they have no sidecar.
func (r *rig) provide(name string, primaries []*bind.Server, secondaries ...*bind.Server) *v1beta1.DNSProvider {
	r.t.Helper()
	at := func(servers []*bind.Server) (all []v1beta1.ProviderServer) {
		for _, s := range servers {
			all = append(all, v1beta1.ProviderServer{Address: s.Addr.Addr().String(), Port: int32(s.Addr.Port())})
		}
		return all
	}
	p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, UID: types.UID(name)}}
	p.Spec.RFC2136 = &v1beta1.RFC2136Provider{
		Primaries: at(primaries), Secondaries: at(secondaries),
		UpdateKey:   v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name + "-update"}},
		TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name + "-transfer"}},
	}
	if len(primaries) > 0 {
		r.setKeys(name, &primaries[0].Update, &primaries[0].Transfer)
	}
	r.scope.providers = append(r.scope.providers, p)
	r.scope.servers = serving.AddProviders(r.scope.servers, []*v1beta1.DNSProvider{p})
	return p
}

func (r *rig) setKeys(provider string, update, transfer *wire.Key) {
	r.keys.Set(types.NamespacedName{Namespace: "dns", Name: provider + "-update"}, update)
	r.keys.Set(types.NamespacedName{Namespace: "dns", Name: provider + "-transfer"}, transfer)
}

// withoutInstances leaves the zone to its providers.
func (r *rig) withoutInstances() {
	r.scope.instances, r.primary = nil, nil
	r.scope.servers = slices.DeleteFunc(r.scope.servers, func(s observe.Server) bool { return s.Provider == "" })
}

func (r *rig) outcomeOf(p passResult, provider string) statuswriter.ServerOutcome {
	r.t.Helper()
	for _, s := range p.event.Servers {
		if s.Provider == provider {
			return s
		}
	}
	r.t.Fatalf("no outcome of provider %s: %+v", provider, p.event.Servers)
	return statuswriter.ServerOutcome{}
}

// A zone on an instance and on a server that somebody else runs is the same on both: content, serial, and what others added.
func TestProviderIsKeptEqualToAnInstance(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: "legacy 300 A 192.0.2.77\n"}}})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass() // The instance is on a later serial than the server outside.
	r.insert(0, "inside."+rigZone+" 300 A 192.0.2.66")
	r.provide("corp", []*bind.Server{outside})
	r.primary = append(r.primary, outside)
	p := r.pass()
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		t.Fatalf("the first pass: %+v", p.event)
	}
	r.holds("www", "192.0.2.10")
	r.holds("legacy", "192.0.2.77")
	r.holds("inside", "192.0.2.66")
	if out := r.outcomeOf(p, "corp"); !out.Current || out.Err != nil {
		t.Errorf("the provider's server: %+v", out)
	}
	r.byHand(1, "www", "")
	r.byHand(1, "byhand", "192.0.2.99")
	if p = r.pass(); p.event.Drift != 1 || len(p.event.Unprogrammed) > 0 {
		t.Errorf("drift %d, unprogrammed %v", p.event.Drift, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.10")
	r.holds("byhand", "192.0.2.99")
	for range 2 {
		p = r.pass()
	}
	if !p.Rested {
		t.Errorf("it does not rest: %+v", p.event)
	}
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	if after := requeueAfter(p, backoff, ctrl.Request{}); after > 2*foreignInterval {
		t.Errorf("the next look at a server that notifies nobody is in %s", after)
	}
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	r.pass()
	r.holds("www", "192.0.2.11")
}

// A zone may live on servers of others alone: several primaries that are kept equal, and a secondary that follows them.
func TestProviderAloneServesAZone(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.withoutInstances()
	follower := bind.Reserve(t)
	key := bind.NewKey("isp-transfer.")
	update := bind.NewKey("isp-update.")
	zones := []bind.Zone{{Name: rigZone}}
	for range 2 {
		r.primary = append(r.primary, bind.Start(t, bind.Options{Zones: zones, Update: update, Transfer: key}))
	}
	secondary := bind.Start(t, bind.Options{Role: bind.Secondary, Addr: follower, Primary: r.primary[0], Zones: zones})
	r.provide("isp", r.primary, secondary)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	p := r.pass()
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		t.Fatalf("the pass: %+v", p.event)
	}
	r.holds("www", "192.0.2.10")
	// Nobody notifies the secondary: it is behind, which is no failure until it lasts.
	behind := p.event.Servers[2]
	if behind.Current || behind.Err != nil || behind.Role != observe.Secondary {
		t.Errorf("the secondary: %+v", behind)
	}
	r.now = func() time.Time { return time.Now().Add(2 * hostsecondary.Grace) }
	if p = r.pass(); p.event.Servers[2].Err == nil || !strings.Contains(p.event.Servers[2].Err.Error(), status.ZoneTransferFailed) {
		t.Errorf("a secondary that stays behind: %+v", p.event.Servers[2])
	}
	if err := wire.Notify(t.Context(), follower, rigZone, p.event.Serial, &key); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); !p.event.Servers[2].Current; p = r.pass() {
		if time.Since(began) > time.Minute {
			t.Fatalf("the secondary does not follow: %+v", p.event.Servers[2])
		}
	}
}

// What is wrong at one place is reported with the server's words and the remedy, and hinders no other.
func TestProviderProblemsHinderNobodyElse(t *testing.T) {
	stranger := bind.NewKey("update.")
	for name, c := range map[string]struct {
		zone    string
		policy  string
		disturb func(r *rig, outside *bind.Server)
		want    string
	}{
		"no such zone": {zone: "other.test.", want: "create the zone there"},
		"wrong key": {zone: rigZone, disturb: func(r *rig, outside *bind.Server) {
			r.setKeys("corp", &stranger, &outside.Transfer)
		}, want: "dns/corp-update"},
		"unknown key": {zone: rigZone, disturb: func(r *rig, outside *bind.Server) {
			unknown := bind.NewKey("nobody-knows-it.")
			r.setKeys("corp", &outside.Update, &unknown)
		}, want: "BADKEY"},
		"no right to the SOA": {zone: rigZone, policy: "grant * zonesub A AAAA TXT;", want: "an update-policy that includes SOA), or set writers: Shared"},
		"no right to transfer": {zone: rigZone, disturb: func(r *rig, outside *bind.Server) {
			r.setKeys("corp", &outside.Update, &powerless)
		}, want: "allow-transfer"},
		"no such provider": {zone: rigZone, disturb: func(r *rig, _ *bind.Server) {
			r.scope.servers = r.scope.servers[:0:0]
			r.scope.providers = nil
			gone := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "corp"}}
			r.scope.providers = append(r.scope.providers, gone)
		}, want: "DNSProvider corp does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{})
			own := slices.Clone(r.scope.servers)
			outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: c.zone, Policy: c.policy}}, Keys: []wire.Key{powerless}})
			r.provide("corp", []*bind.Server{outside})
			if c.disturb != nil {
				if c.disturb(r, outside); len(r.scope.servers) == 0 {
					r.scope.servers = serving.AddProviders(own, r.scope.providers)
				}
			}
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			p := r.pass()
			r.holds("www", "192.0.2.10")
			if p.event.Programmed.Holds() || !strings.Contains(p.event.Programmed.Message, c.want) || !strings.Contains(p.event.Programmed.Message, "corp") {
				t.Errorf("problem %q does not say %q", p.event.Programmed.Message, c.want)
			}
		})
	}
}

var powerless = bind.NewKey("powerless.")

// Queries do not show undeclared records: no other primary can be kept equal to one that is read by query, unless each counts its own
// serial.
func TestProviderReadByQueryBesideAnInstance(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: "legacy 300 A 192.0.2.77\n"}}})
	own := slices.Clone(r.scope.servers)
	p := r.provide("corp", []*bind.Server{outside})
	r.setKeys("corp", &outside.Update, &outside.Update)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	for _, writers := range []v1beta1.WriterMode{v1beta1.WritersExclusive, v1beta1.WritersShared} {
		p.Spec.RFC2136.Writers, p.Spec.RFC2136.ReadBy = writers, v1beta1.ReadByQuery
		r.scope.servers = serving.AddProviders(own, r.scope.providers)
		done := r.pass()
		if isShared := writers == v1beta1.WritersShared; done.event.Programmed.Holds() != isShared || !isShared && !strings.Contains(done.event.Programmed.Message, "set readBy to Transfer, or writers to Shared") {
			t.Errorf("%s: %+v", writers, done.event.Programmed)
		}
	}
	r.holds("www", "192.0.2.10")
	if got := served(t, outside, "www"); !slices.Equal(got, []string{"192.0.2.10"}) {
		t.Errorf("the provider has %v", got)
	}
}

// Knot takes our SOA, and a prerequisite that does not hold keeps it from applying a message: a zone on it is kept equal to one on
// BIND, whoever else writes to it.
func TestProviderOnKnot(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	k := knot.Start(t, map[string]string{rigZone: "legacy A 192.0.2.77\n"})
	outside := &bind.Server{Addr: k.Addr, Update: k.Update, Transfer: k.Transfer}
	r.provide("knot", []*bind.Server{outside})
	r.primary = append(r.primary, outside)
	for n := range 3 {
		r.zones.Set(r.a("www", int64(n+1), fmt.Sprintf("192.0.2.%d", 10+n)))
		if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
			t.Fatalf("pass %d: %+v, %v", n, p.event.Programmed, p.event.Unprogrammed)
		}
		r.holds("www", fmt.Sprintf("192.0.2.%d", 10+n))
		r.holds("legacy", "192.0.2.77")
	}
	r.byHand(1, "www", "")
	r.byHand(1, "byhand", "192.0.2.99")
	if p := r.pass(); p.event.Drift != 1 || len(p.event.Unprogrammed) > 0 {
		t.Errorf("drift %d, unprogrammed %v", p.event.Drift, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.12")
	r.holds("byhand", "192.0.2.99")
	// Somebody writes between the look and the update.
	r.updates = meddlerBefore{r.updates, sync.OnceFunc(func() { r.byHand(1, "race", "192.0.2.98") })}
	r.zones.Set(r.a("www", 9, "192.0.2.19"))
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		t.Errorf("after a race: %+v, %v", p.event.Programmed, p.event.Unprogrammed)
	}
	r.pass()
	r.holds("www", "192.0.2.19")
	r.holds("race", "192.0.2.98")
	wrong := bind.NewKey(k.Update.Name)
	r.setKeys("knot", &wrong, &k.Transfer)
	r.zones.Set(r.a("www", 10, "192.0.2.20"))
	if p := r.pass(); !strings.Contains(p.event.Programmed.Message, "BADSIG") {
		t.Errorf("a wrong key: %+v", p.event.Programmed)
	}
}

// meddlerBefore is an update client before whose updates somebody else changes the zone.
type meddlerBefore struct {
	updateClient
	meddle func()
}

func (m meddlerBefore) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	m.meddle()
	return m.updateClient.Apply(ctx, to, changes, have, want)
}

// lossy is an update client whose next updates reach another server, which hangs up.
type lossy struct {
	updateClient
	hangsUp netip.AddrPort
	lost    int
}

func (l *lossy) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	if l.lost > 0 {
		l.lost--
		to.Server = l.hangsUp
	}
	return l.updateClient.Apply(ctx, to, changes, have, want)
}

// An update that is lost on its way is sent again, and what the server still has is nobody's doing: no drift is reported, and the RRset is not
// contested however often that happens.
func TestLostUpdateIsNoDrift(t *testing.T) {
	hangsUp := tcpserver.Start(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 2)) })
	r := newRig(t, 1, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.settle()
	updates := &lossy{updateClient: r.updates, hangsUp: hangsUp}
	r.updates = updates
	generation := int64(1)
	for range content.OwnCorrections + 2 {
		for _, address := range []string{"192.0.2.11", "192.0.2.10"} {
			generation++
			r.zones.Set(r.a("www", generation, address))
			updates.lost = primary.MaxTries - 1
			if p := r.mustSync(); p.event.Drift > 0 || len(p.event.Contested) > 0 {
				t.Fatalf("drift %v, contested %v", p.event.Removed, p.event.Contested)
			}
			r.holds("www", address)
		}
	}
	generation++
	r.zones.Set(r.a("www", generation, "192.0.2.12"))
	updates.lost = primary.MaxTries
	p := r.pass()
	if len(p.Primaries) != 1 || !errors.Is(p.Primaries[0].Err, host.ErrUnknown) || p.event.Drift > 0 {
		t.Errorf("drift %v, primaries %+v", p.event.Removed, p.Primaries)
	}
	if p = r.mustSync(); p.event.Drift > 0 {
		t.Errorf("drift %v", p.event.Removed)
	}
	r.holds("www", "192.0.2.12")
}

// laggard is an update client whose reply from one server comes after that of the other one, which somebody changes before its first update.
type laggard struct {
	updateClient
	slow   netip.AddrPort
	meddle func()
	once   sync.Once
	other  chan struct{}
}

func (l *laggard) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	if to.Server != l.slow {
		first := false
		if l.once.Do(func() { l.meddle(); first = true }); first {
			defer close(l.other)
		}
		return l.updateClient.Apply(ctx, to, changes, have, want)
	}
	result, err := l.updateClient.Apply(ctx, to, changes, have, want)
	select {
	case <-l.other:
	case <-ctx.Done():
	}
	return result, err
}

// TestPrimaryLacksWhatAnotherOneHasMeanwhile: a primary is not blamed for what was found on another one after its own update. It gets that
// in the same pass.
func TestPrimaryLacksWhatAnotherOneHasMeanwhile(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	r.updates = &laggard{
		updateClient: r.updates, slow: r.primary[0].Addr, other: make(chan struct{}),
		meddle: func() { r.byHand(1, "theirs", "192.0.2.99") },
	}
	r.zones.Set(r.a("www", 2, "192.0.2.20"))
	if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		t.Errorf("%+v, %v", p.event.Programmed, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.20")
	r.holds("theirs", "192.0.2.99")
}

// barrier is an update client for two servers: somebody changes their zone before either has the first update, or after both have it.
type barrier struct {
	updateClient
	before, after func()
	updated       sync.WaitGroup
	rounds        sync.Map
}

func (b *barrier) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	if _, again := b.rounds.LoadOrStore(to.Server, true); again {
		return b.updateClient.Apply(ctx, to, changes, have, want)
	}
	b.before()
	result, err := b.updateClient.Apply(ctx, to, changes, have, want)
	b.updated.Done()
	b.updated.Wait()
	b.after()
	return result, err
}

// What nobody declares and somebody removes from all primaries during a pass does not come back from what the pass has seen of one
// before.
func TestForeignDataRemovedDuringAPassStaysAway(t *testing.T) {
	for name, at := range map[string]func(b *barrier, remove func()){
		"before the update":           func(b *barrier, remove func()) { b.before = remove },
		"between update and readback": func(b *barrier, remove func()) { b.after = remove },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, bind.Zone{Records: "theirs 300 A 192.0.2.99\n"})
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			r.pass()
			r.holds("theirs", "192.0.2.99")
			b := &barrier{updateClient: r.updates, before: func() {}, after: func() {}}
			b.updated.Add(2)
			at(b, sync.OnceFunc(func() {
				r.byHand(0, "theirs", "")
				r.byHand(1, "theirs", "")
			}))
			r.updates = b
			r.zones.Set(r.a("www", 2, "192.0.2.20"))
			for range 3 {
				if p := r.pass(); !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 || p.event.Drift > 1 {
					t.Errorf("%+v, %v, drift %d", p.event.Programmed, p.event.Unprogrammed, p.event.Drift)
				}
				r.holds("www", "192.0.2.20")
				r.holds("theirs")
			}
		})
	}
}

// A zone that is declared as its hidden primary has it, which is what an import writes, changes nothing there, not even the serial, whoever
// else writes; from then on its records are published, MNAME and name servers are what they were, and all name servers are notified.
func TestHiddenPrimaryOutsideStaysAsItIs(t *testing.T) {
	for _, writers := range []v1beta1.WriterMode{v1beta1.WritersExclusive, v1beta1.WritersShared} {
		t.Run(string(writers), func(t *testing.T) {
			addr := bind.Reserve(t)
			notified := listenForNotify(t, addr.Port(), "127.0.0.2", "127.0.0.3")
			outside := bind.Start(t, bind.Options{
				Addr: addr, Extra: fmt.Sprintf("port %d;", addr.Port()), // which is where it notifies name servers
				Zones: []bind.Zone{{Name: rigZone, Extra: "notify yes;", File: `$ORIGIN example.test.
$TTL 300
@ SOA hidden hostmaster 2026112601 7200 900 1209600 60
@ NS ns1
@ NS ns2
ns1 A 127.0.0.2
ns2 A 127.0.0.3
www A 192.0.2.80
`}}})
			r := newBareRig(t)
			r.zone.Spec.TTL, r.zone.Spec.NameServerIPs = new(int64(300)), nil
			r.zone.Spec.SOARecord = v1beta1.SOARecord{
				PrimaryNS: "hidden.example.test.", HiddenPrimary: true, AdminEmail: "hostmaster.example.test.",
				Serial: 2026112601, Refresh: 7200, Retry: 900, Expire: 1209600, NegativeTTL: new(int64(60)),
			}
			r.zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1.example.test.", IPv4Address: "127.0.0.2"}, {Hostname: "ns2.example.test.", IPv4Address: "127.0.0.3"}}
			r.zones.Set(r.zone)
			p := r.provide("corp", []*bind.Server{outside})
			p.Spec.RFC2136.Writers = writers
			r.scope.servers = serving.AddProviders(nil, []*v1beta1.DNSProvider{p})
			before := r.look(outside)
			r.mustSync()
			after := r.look(outside)
			if before.SOA != after.SOA || !before.SameContent(after) {
				t.Errorf("SOA %+v before, %+v after", before.SOA, after.SOA)
			}
			r.zones.Set(r.a("new", 1, "192.0.2.81"))
			r.mustSync()
			after = r.look(outside)
			_, published := after.Get(rrset.Key{Name: "new." + rigZone, Type: dns.TypeA})
			if !published || after.SOA.MName != "hidden.example.test." || after.SOA.Serial == before.SOA.Serial {
				t.Errorf("published %t, SOA %+v", published, after.SOA)
			}
			apex := rrset.Key{Name: rigZone, Type: dns.TypeNS}
			was, _ := before.Get(apex)
			if is, _ := after.Get(apex); !is.Equal(was) {
				t.Errorf("the name servers are %v, and were %v", is.Rdata, was.Rdata)
			}
			for host, serials := range notified {
				requireNotified(t, host, serials, after.SOA.Serial)
			}
		})
	}
}

// requireNotified waits until a host is notified of a serial.
func requireNotified(t *testing.T, host string, serials <-chan uint32, want uint32) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case serial := <-serials:
			if serial == want {
				return
			}
		case <-late:
			t.Fatalf("%s was not notified of serial %d", host, want)
		}
	}
}

// listenForNotify listens at a port of several hosts, and returns the serials of which each is notified.
func listenForNotify(t *testing.T, port uint16, hosts ...string) map[string]<-chan uint32 {
	t.Helper()
	all := map[string]<-chan uint32{}
	for _, host := range hosts {
		conn, err := net.ListenPacket("udp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			t.Fatal(err)
		}
		serials := make(chan uint32, 100)
		all[host] = serials
		server := &dns.Server{PacketConn: conn, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }}
		server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
			for _, rr := range m.Answer {
				if soa, ok := rr.(*dns.SOA); ok && m.Opcode == dns.OpcodeNotify {
					serials <- soa.Serial
				}
			}
			_ = w.WriteMsg(new(dns.Msg).SetReply(m))
		})
		go func() { _ = server.ActivateAndServe() }()
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return all
}

// On a server that is read by queries, a record is there while a wildcard answers with the same. It is put there as soon as the wildcard does
// not any more: because that has changed, or because the name exists for another reason.
func TestProviderReadByQueryWithAWildcard(t *testing.T) {
	for _, on := range conformers {
		if on.readBy != v1beta1.ReadByQuery {
			continue
		}
		t.Run(on.column(), func(t *testing.T) {
			c := newConformanceRun(t, on)
			same := []string{"text.wild 300 A 192.0.2.5", "above.wild 300 A 192.0.2.5", "other.wild 300 A 192.0.2.5"}
			for _, lines := range [][]string{
				{"*.wild 300 A 192.0.2.5"},
				append(same, "*.wild 300 A 192.0.2.5"),
				append(same, "*.wild 300 A 192.0.2.5", `text.wild 300 TXT "x"`, "below.above.wild 300 A 192.0.2.6"),
				append(same, "*.wild 300 A 192.0.2.7"),
				same,
			} {
				c.declare(lines...)
				if p := c.mustSync(); p.event.Drift > 0 {
					t.Errorf("%q: drift %v", lines, p.event.Removed)
				}
				for _, line := range lines {
					key, _, values := readLine(line)
					if name := strings.TrimSuffix(key.Name, "."+rigZone); key.Type == dns.TypeA && !slices.Equal(served(t, c.server, name), values) {
						t.Errorf("%q: %s has %q", lines, name, served(t, c.server, name))
					}
				}
			}
		})
	}
}
