package registry

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Where the zone's name servers lead follows from what the servers hold and from the addresses of Services.
func TestNameServersFollowServices(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test."})
	w.Apply(fakekube.Zone("example.test", "primary", "secondary"))
	w.Eventually("it is in sync", func() bool { return w.get("dnszone.example.test").Status.InSync })
	if got := w.get("dnszone.example.test").NameServers; len(got) != 1 || got[0].Name != "ns1.example.test." ||
		got[0].LeadsTo != syncv1.TargetUnknown || len(got[0].Addresses) != 1 || got[0].Message == "" {
		t.Errorf("an address that nobody is known to have: %+v", got)
	}
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("dnszone.example.test", allInStep)
	w.Apply(&v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "secondary"},
		Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: v1beta1.RoleSecondary, Replicas: new(int32(1))},
		Status:     v1beta1.Bind9InstanceStatus{ServiceAddress: "192.0.2.1"},
	})
	for {
		_, s := events.next()
		if n := s.NameServers; len(n) == 1 && n[0].LeadsTo == syncv1.TargetServer && n[0].Instances[0] == "secondary" && n[0].Message == "" {
			break
		}
	}
}

// How many records of one name a zone can have follows from what its instances take.
func TestRecordLimitFollowsInstances(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test."})
	z := fakekube.Zone("example.test", "primary", "secondary")
	record := w.Record(z, "www", "192.0.2.1")
	for i := range 100 {
		record.Spec.IPv4Addresses = append(record.Spec.IPv4Addresses, fmt.Sprintf("198.51.100.%d", i))
	}
	w.Apply(z)
	w.Apply(record)
	accepted := func(status metav1.ConditionStatus, reason string) func() bool {
		return func() bool {
			c := meta.FindStatusCondition(w.get("arecord.www").Status.Conditions, syncv1.ConditionAccepted)
			return c.Status == status && c.Reason == reason
		}
	}
	w.Eventually("it has too many values", accepted(metav1.ConditionFalse, "Unsupported"))
	for name, role := range map[string]v1beta1.ServerRole{"primary": v1beta1.RolePrimary, "secondary": v1beta1.RoleSecondary} {
		w.Apply(&v1beta1.Bind9Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: role, Replicas: new(int32(1))},
			Status:     v1beta1.Bind9InstanceStatus{MaxRecordsPerType: 101},
		})
	}
	w.Eventually("all servers take them", accepted(metav1.ConditionTrue, "Accepted"))
}

// Who requests a zone by name learns what clients get at each address that is known: also at one that is published and belongs to nobody here. A
// request for a record asks nothing of that. Who watches then sees it change.
func TestFurtherPathsAreAsked(t *testing.T) {
	w := newWorld(t)
	published := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 77, byte(os.Getpid() >> 8), byte(os.Getpid())}), 53)
	w.Lagging(bind.Zone{Name: "example.test.", File: "$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 hostmaster 5 3600 600 86400 60\n@ NS ns1\nns1 A " + published.Addr().String() + "\nwww A 192.0.2.7\n"})
	stop := serveFormer(t, published.String())
	z := fakekube.Zone("example.test", "primary", "secondary")
	z.Spec.NameServers[0].IPv4Address = published.Addr().String()
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	w.Eventually("the record is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	for _, s := range w.list(query{namespace: ns}).Items {
		if len(s.Paths) > 0 {
			t.Errorf("%s has paths although nobody has requested the zone: %+v", s.Name, s.Paths)
		}
	}
	at := func(s *syncv1.SyncStatus) (states []syncv1.ServerState) {
		for _, p := range s.Paths {
			switch {
			case p.Address == published.String():
				states = append(states, p.State)
			case p.Type != syncv1.PathPod || p.State != syncv1.StateInSync || p.Server == "" || *p.Serial != 5:
				t.Errorf("a pod: %+v", p)
			}
		}
		return states
	}
	both := func(state syncv1.ServerState) []syncv1.ServerState { return []syncv1.ServerState{state, state} }
	w.Eventually("the former version is found", func() bool {
		s := w.get("dnszone.example.test")
		c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered)
		return s.Status.InSync && len(s.Paths) == 6 && slices.Equal(at(s), both(syncv1.StateStale)) && c.Status == metav1.ConditionFalse && s.Paths[0].Server == "former"
	})
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	await := func(state syncv1.ServerState) {
		for {
			if _, s := events.next(); s.Name == "dnszone.example.test" && slices.Equal(at(s), both(state)) {
				return
			}
		}
	}
	await(syncv1.StateStale)
	stop()
	await(syncv1.StateUnreachable)
}

// serveFormer answers everybody at an address with the SOA of a version of example.test that has been replaced.
func serveFormer(t *testing.T, at string) (stop func()) {
	t.Helper()
	soa, err := dns.NewRR("example.test. 300 SOA ns1.example.test. hostmaster.example.test. 4 3600 600 86400 60")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var servers []*dns.Server
	for _, network := range []string{"udp", "tcp"} {
		started := make(chan struct{})
		s := &dns.Server{Addr: at, Net: network, NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			m := new(dns.Msg).SetReply(q)
			if opt := q.IsEdns0(); opt != nil && q.Question[0].Qtype == dns.TypeSOA {
				m.Authoritative, m.Answer = true, []dns.RR{soa}
				m.SetEdns0(1232, false)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "666f726d6572"}} // "former"
			}
			_ = w.WriteMsg(m)
		})}
		servers = append(servers, s)
		failed := make(chan error, 1)
		running.Go(func() { failed <- s.ListenAndServe() })
		select {
		case <-started:
		case err := <-failed:
			t.Fatal(err)
		}
	}
	stop = sync.OnceFunc(func() {
		for _, s := range servers {
			_ = s.Shutdown()
		}
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// fakeVantage answers for every address with another version, and counts requests.
type fakeVantage struct{ asked atomic.Int32 }

func (*fakeVantage) Name() string { return "berlin" }

func (v *fakeVantage) Ask(_ context.Context, _ string, questions []vantage.Question) []observe.Observation {
	v.asked.Add(1)
	answers := make([]observe.Observation, len(questions))
	for i, q := range questions {
		answers[i] = observe.Observation{Server: q.Address, At: time.Now(), AA: true, Authoritative: true, Serial: 99, SOA: rrset.SOA{MName: "x.", Serial: 99}, ServerID: "ber1"}
	}
	return answers
}

// A vantage is asked once for all addresses of a zone that somebody requests by name, and for no record and no list. What it sees makes nothing in sync
// and nothing out of sync.
func TestVantageIsAsked(t *testing.T) {
	v := &fakeVantage{}
	w := newWorld(t, func(o *testOptions) { o.Vantages = []ask.Vantage{v} })
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	w.Declare("www")
	w.Eventually("the record is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	w.list(query{namespace: ns})
	if n := v.asked.Load(); n != 0 {
		t.Errorf("the vantage was asked %d times about a record and a list", n)
	}
	var s *syncv1.SyncStatus
	seen := func() (rows []syncv1.Path) {
		for _, p := range s.Paths {
			if p.Vantage == "berlin" {
				rows = append(rows, p)
			}
		}
		return rows
	}
	s = w.get("dnszone.example.test")
	if rows := seen(); len(rows) != 2 || rows[0].Address != "192.0.2.1:53" || rows[1].Server != "ber1" || *rows[1].Serial != 99 || rows[0].State != syncv1.StateUnknown {
		t.Errorf("the vantage saw %+v, and the servers may have it by now", rows)
	}
	w.Eventually("it is known that no server has it", func() bool {
		s = w.get("dnszone.example.test")
		c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered)
		rows := seen()
		return rows[0].State == syncv1.StateDivergent && rows[1].State == syncv1.StateDivergent && c.Status == metav1.ConditionFalse && s.Status.InSync
	})
	w.Eventually("a later request asks again", func() bool { w.get("dnszone.example.test"); return v.asked.Load() > 1 })
}
