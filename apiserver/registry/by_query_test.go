package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// byQuery makes a zone on a server that lets nobody transfer it, behind a proxy, with records that are declared as they are there.
func byQuery(t testing.TB, records string, names map[string]string, change ...func(*testOptions)) (w *world, server *bind.Server, proxy *bind.Proxy, z *v1beta1.DNSZone) {
	t.Helper()
	w = newWorld(t, change...)
	server = bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{{Name: "example.test.", Records: records, Extra: "allow-transfer { none; };"}}})
	proxy = bind.StartProxy(t, server.Addr)
	w.ServerByQuery("primary", v1beta1.RolePrimary, proxy.Addr)
	z = fakekube.Zone("example.test", "primary")
	w.Apply(z)
	for name, address := range names {
		w.Apply(w.Record(z, name, address))
	}
	w.awaitRecords(maps.Keys(names))
	return w, server, proxy, z
}

// awaitRecords waits until the caches have ARecords, in their zone, and the primary.
func (w *world) awaitRecords(names iter.Seq[string]) {
	w.Helper()
	w.Eventually("the caches have the objects", func() bool {
		for name := range names {
			if !w.verdicts.informers.Exists(keyOf("arecord."+name)) || len(w.verdicts.index.ZoneNames(keyOf("arecord."+name))) == 0 {
				return false
			}
		}
		return w.verdicts.informers.Exists(keyOf("bind9instance.primary"))
	})
}

func rowOf(s *syncv1.SyncStatus) syncv1.ServerStatus { return s.Servers[0] }

// getReached returns a status for which the server was reached in time, which a busy machine may not grant.
func (w *world) getReached(name string) (s *syncv1.SyncStatus) {
	w.Helper()
	w.Eventually("the server is reached in time", func() bool {
		s = w.get(name)
		return rowOf(s).State != syncv1.StateUnreachable
	})
	return s
}

func TestReadByQuery(t *testing.T) {
	w, server, _, z := byQuery(t, "www A 192.0.2.10\nmail A 192.0.2.11\nforeign A 192.0.2.99\n", map[string]string{"www": "192.0.2.10", "mail": "192.0.2.11"})
	if s := w.getReached("arecord.www"); !s.Status.InSync || rowOf(s).ReadBy != "Query" || rowOf(s).Serial == nil || rowOf(s).Message != "" {
		t.Fatalf("in sync: %s, row %+v", states(s), rowOf(s))
	}
	s := w.getReached("dnszone.example.test")
	if c := rowOf(s).Records; !s.Status.InSync || c == nil || *c != (syncv1.RecordCounts{InSync: 4}) || !strings.Contains(rowOf(s).Message, "only what is declared") {
		t.Errorf("the zone: %s, row %+v, counts %+v", states(s), rowOf(s), rowOf(s).Records)
	}
	fakekube.Update(t, server, "example.test.", "www.example.test.", "192.0.2.66")
	if s := w.getReached("arecord.www"); rowOf(s).State != syncv1.StateDivergent || rowOf(s).Observed[0].Rdata[0] != "192.0.2.66" {
		t.Errorf("changed by hand: %s, row %+v", states(s), rowOf(s))
	}
	fakekube.Update(t, server, "example.test.", "www.example.test.")
	if s := w.getReached("arecord.www"); rowOf(s).State != syncv1.StateMissing {
		t.Errorf("removed by hand: %s, row %+v", states(s), rowOf(s))
	}
	if s := w.getReached("dnszone.example.test"); *rowOf(s).Records != (syncv1.RecordCounts{InSync: 3, OutOfSync: 1}) || s.Summary.RecordsOutOfSync != 1 {
		t.Errorf("the zone: %s, row %+v, counts %+v", states(s), rowOf(s), rowOf(s).Records)
	}
	if s := w.getReached("arecord.mail"); !s.Status.InSync {
		t.Errorf("another record: %s", states(s))
	}
	pending := w.Record(z, "new", "192.0.2.20")
	pending.Status = v1beta1.RecordStatus{}
	w.Apply(pending)
	if s := w.getReached("arecord.new"); s.Status.Phase != syncv1.PhasePropagating || rowOf(s).State != syncv1.StateStale {
		t.Errorf("not programmed yet: %s, row %+v", states(s), rowOf(s))
	}
	fakekube.Update(t, server, "example.test.", "new.example.test.", "192.0.2.20")
	if s := w.getReached("arecord.new"); !s.Status.InSync {
		t.Errorf("programmed: %s, row %+v", states(s), rowOf(s))
	}
}

// What is below a delegation is in its referral, and a wildcard answers for names that do not exist.
func TestReadByQueryWhatAnswersShow(t *testing.T) {
	w, _, _, z := byQuery(t, "*.wild 300 A 192.0.2.5\nsub 300 NS ns.sub\nns.sub 300 A 192.0.2.6\n", nil)
	meta := func(name string) *v1beta1.ARecord { return w.Record(z, name, "192.0.2.5") }
	wild := meta("wild")
	wild.Spec.Name = "*.wild"
	w.SetProgrammed(z, wild)
	w.Apply(wild)
	ns := &v1beta1.NSRecord{ObjectMeta: meta("sub").ObjectMeta, Spec: v1beta1.NSRecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "sub"}, Nameserver: "ns.sub.example.test."}}
	ns.UID = "NSRecord-sub"
	w.Apply(ns)
	glue := w.Record(z, "glue", "192.0.2.6")
	glue.Spec.Name = "ns.sub"
	w.SetProgrammed(z, glue)
	w.Apply(glue)
	for _, object := range []string{"arecord.wild", "nsrecord.sub", "arecord.glue", "dnszone.example.test"} {
		if s := w.getReached(object); !s.Status.InSync {
			t.Errorf("%s: %s, row %+v", object, states(s), rowOf(s))
		}
	}
	gone := w.Record(z, "gone", "192.0.2.7")
	gone.Spec.Name, gone.Status.PublishedName = "now.other", "gone.wild.example.test"
	w.Apply(gone)
	if s := w.getReached("arecord.gone"); len(rowOf(s).Observed) != 1 || rowOf(s).Observed[0].Name != "now.other.example.test." {
		t.Errorf("a name that only the wildcard answers for: %s, row %+v", states(s), rowOf(s))
	}
}

// An answer without a valid signature proves nothing.
func TestReadByQueryNeedsSignedAnswers(t *testing.T) {
	other := bind.NewKey("transfer.")
	w, _, _, _ := byQuery(t, "www A 192.0.2.10\n", map[string]string{"www": "192.0.2.10"}, func(o *testOptions) {
		o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) { return &other, nil }
	})
	for _, object := range []string{"arecord.www", "dnszone.example.test"} {
		if s := w.get(object); s.Status.InSync || rowOf(s).State == syncv1.StateInSync {
			t.Errorf("%s without a valid signature: %s, row %+v", object, states(s), rowOf(s))
		}
	}
	w, _, proxy, _ := byQuery(t, "www A 192.0.2.10\n", map[string]string{"www": "192.0.2.10"})
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if err := m.Unpack(reply); err != nil || m.Question[0].Qtype == dns.TypeSOA {
			return reply, err
		}
		m.Extra = nil
		return m.Pack()
	})
	if s := w.get("arecord.www"); s.Status.InSync || !strings.Contains(rowOf(s).Message, "not signed") {
		t.Errorf("with answers of somebody else: %s, row %+v", states(s), rowOf(s))
	}
}

// A request for one object is never answered by what was asked before it, unless the zone has not changed.
func TestReadByQueryAsksAnew(t *testing.T) {
	w, server, proxy, _ := byQuery(t, "www A 192.0.2.10\nmail A 192.0.2.11\n", map[string]string{"www": "192.0.2.10", "mail": "192.0.2.11"}, func(o *testOptions) {
		o.Deadline = 300 * time.Millisecond
	})
	if s := w.get("arecord.www"); !s.Status.InSync {
		t.Fatalf("at first: %s, row %+v", states(s), rowOf(s))
	}
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if err := m.Unpack(reply); err != nil || m.Question[0].Name != "www.example.test." {
			return reply, err
		}
		return nil, nil
	})
	fakekube.Update(t, server, "example.test.", "mail.example.test.", "192.0.2.12")
	if s := w.get("arecord.www"); s.Status.InSync || rowOf(s).State != syncv1.StateUnreachable {
		t.Errorf("without an answer: %s, row %+v", states(s), rowOf(s))
	}
}

// A list takes older answers for what has not changed, and says how old they are; what was declared since it asks for.
func TestListByQuery(t *testing.T) {
	w, server, proxy, z := byQuery(t, "www A 192.0.2.10\nmail A 192.0.2.11\n", map[string]string{"www": "192.0.2.10", "mail": "192.0.2.11"})
	var mu sync.Mutex
	asked := map[string]int{}
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if err := m.Unpack(reply); err == nil {
			mu.Lock()
			asked[m.Question[0].Name]++
			mu.Unlock()
		}
		return reply, nil
	})
	item := func(name string) *syncv1.SyncStatus {
		t.Helper()
		for _, s := range w.list(query{namespace: ns}).Items {
			if s.Name == name {
				return &s
			}
		}
		t.Fatalf("%s is not in the list", name)
		return nil
	}
	if s := item("arecord.www"); !s.Status.InSync {
		t.Fatalf("%s, row %+v", states(s), rowOf(s))
	}
	w.Eventually("everything was asked", func() bool { return item("dnszone.example.test").Status.InSync })
	mu.Lock()
	before := asked["www.example.test."]
	mu.Unlock()
	for began := time.Now(); time.Since(began) < 7*time.Second; { // Three sweeps would have begun.
		if s := item("arecord.www"); !s.Status.InSync {
			t.Fatalf("%s, row %+v", states(s), rowOf(s))
		}
	}
	mu.Lock()
	if again := asked["www.example.test."] - before; again > 1 { // A sweep may have been under way.
		t.Errorf("of an unchanged zone %d questions were asked again", again)
	}
	mu.Unlock()

	fakekube.Update(t, server, "example.test.", "www.example.test.", "192.0.2.66")
	again := w.Record(z, "www", "192.0.2.10") // Changed and changed back.
	again.Generation = 3
	w.SetProgrammed(z, again)
	w.Apply(again)
	w.Eventually("the cache has it", func() bool { return item("arecord.www").ObjectRef.Generation == 3 })
	if s := item("arecord.www"); rowOf(s).State != syncv1.StateDivergent {
		t.Errorf("declared since: %s, row %+v", states(s), rowOf(s))
	}
	fakekube.Update(t, server, "example.test.", "mail.example.test.", "192.0.2.67")
	w.Eventually("a change by hand is noticed", func() bool { return rowOf(item("arecord.mail")).State == syncv1.StateDivergent })
}

// The same serial does not prove the same data: it is asked for again at the verify interval.
func TestByQueryOtherDataUnderTheSameSerial(t *testing.T) {
	w, server, _, _ := byQuery(t, "www A 192.0.2.10\n", map[string]string{"www": "192.0.2.10"}, func(o *testOptions) { o.VerifyInterval = time.Second })
	inList := func() syncv1.ServerState {
		for _, s := range w.list(query{namespace: ns}).Items {
			if s.Name == "arecord.www" {
				return rowOf(&s).State
			}
		}
		return ""
	}
	if state := inList(); state != syncv1.StateInSync {
		t.Fatalf("at first: %s", state)
	}
	file := filepath.Join(server.Dir, "example.test.zone")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "192.0.2.10", "192.0.2.77")), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	server.Restart(t)
	w.Eventually("the list shows it", func() bool { return inList() == syncv1.StateDivergent })
}

// A server gets no more questions in a second than it may, however many records there are.
func TestByQueryRate(t *testing.T) {
	const n, rate = 600, 200
	var lines strings.Builder
	names := map[string]string{}
	for i := range n {
		fmt.Fprintf(&lines, "r%d A 10.0.%d.%d\n", i, i/250, i%250)
		names[fmt.Sprintf("r%d", i)] = fmt.Sprintf("10.0.%d.%d", i/250, i%250)
	}
	w, _, proxy, _ := byQuery(t, lines.String(), names, func(o *testOptions) { o.QuestionRate = rate })
	var mu sync.Mutex
	var last time.Time
	answers, began := 0, time.Now()
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		answers, last = answers+1, time.Now()
		return reply, nil
	})
	waited := false
	w.Eventually("all was asked", func() bool {
		s := w.get("dnszone.example.test")
		waited = waited || w.metric("questions_waiting") > 0
		if c := rowOf(s).Records; c != nil && c.Unknown > 0 && (s.Status.InSync || rowOf(s).ObservedAt == nil) {
			t.Errorf("%d RRsets unknown: %s, row %+v", c.Unknown, states(s), rowOf(s))
		}
		return s.Status.InSync
	})
	if asked := w.metric("questions_total dns primary-0 answered"); asked < n || !waited {
		t.Errorf("%v questions are counted, and that some waited is %t", asked, waited)
	}
	w.Eventually("a sweep is measured", func() bool {
		w.list(query{namespace: ns})
		return w.metric("last_sweep_duration_seconds dns primary-0") > 0
	})
	mu.Lock()
	defer mu.Unlock()
	// Over the whole time: on a busy machine, late answers arrive with others.
	if took := last.Sub(began).Seconds(); float64(answers) > rate*took+rate/4 {
		t.Errorf("%d answers within %.1f s", answers, took)
	}
	if answers < n || errors.Is(w.ctx.Err(), context.Canceled) {
		t.Errorf("%d answers", answers)
	}
}

// A secondary that lets nobody transfer the zone is judged by its answers: it is stale while it is behind, and other data on the right
// serial is not in sync.
func TestSecondaryReadByQuery(t *testing.T) {
	w := newWorld(t)
	zones := []bind.Zone{{Name: "example.test.", Records: "www A 192.0.2.10\nmail A 192.0.2.11\nold A 192.0.2.12\n"}}
	primary := bind.Start(t, bind.Options{Zones: zones, Transfer: w.Key})
	secondary := bind.Start(t, bind.Options{Role: bind.Secondary, Primary: primary, Zones: zones, Closed: true})
	if _, err := wire.Transfer(t.Context(), secondary.Addr, "example.test.", nil, &w.Key); err == nil {
		t.Fatal("the secondary lets us transfer the zone")
	}
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	w.ServerByQuery("isp", v1beta1.RoleSecondary, secondary.Addr)
	z := fakekube.Zone("example.test", "primary", "isp")
	w.Apply(z)
	for name, address := range map[string]string{"www": "192.0.2.10", "mail": "192.0.2.11", "old": "192.0.2.12"} {
		w.Apply(w.Record(z, name, address))
	}
	w.awaitRecords(slices.Values([]string{"www", "mail", "old"}))
	w.Eventually("the secondary is known", func() bool { return len(w.get("arecord.www").Servers) == 2 })
	is := func(object string, want syncv1.ServerState) bool {
		r := w.get(object).Servers[1]
		return r.Instance == "isp" && r.ReadBy == "Query" && r.State == want
	}
	expect := func(when string, want map[string]syncv1.ServerState) {
		t.Helper()
		for object, state := range want {
			if s := w.get(object); !is(object, state) || s.Status.InSync != (state == syncv1.StateInSync) {
				t.Errorf("%s, %s: %s, row %+v", when, object, states(s), s.Servers[1])
			}
		}
	}
	expect("at first", map[string]syncv1.ServerState{"arecord.www": syncv1.StateInSync, "arecord.old": syncv1.StateInSync, "dnszone.example.test": syncv1.StateInSync})

	changed := w.Record(z, "www", "192.0.2.20")
	changed.Generation = 2
	w.SetProgrammed(z, changed)
	w.Apply(changed)
	w.Eventually("the cache has it", func() bool { return w.get("arecord.www").ObjectRef.Generation == 2 })
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.20")
	expect("behind", map[string]syncv1.ServerState{
		"arecord.www": syncv1.StateStale, "dnszone.example.test": syncv1.StateStale, "arecord.mail": syncv1.StateInSync,
	})
	if out, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(out, err)
	}
	w.Eventually("it has followed", func() bool {
		return is("arecord.www", syncv1.StateInSync) && is("dnszone.example.test", syncv1.StateInSync)
	})
	secondary.Stop()
	expect("stopped", map[string]syncv1.ServerState{"arecord.www": syncv1.StateUnreachable, "dnszone.example.test": syncv1.StateUnreachable})

	// Somebody has loaded the zone from elsewhere, on the primary's serial.
	serial := uint32(*w.get("arecord.www").Servers[0].Serial)
	bind.Start(t, bind.Options{Addr: secondary.Addr, Transfer: w.Key, Closed: true, Zones: []bind.Zone{
		{Name: "example.test.", Serial: serial, Records: "www A 192.0.2.20\nmail A 192.0.2.66\n"},
	}})
	expect("other data on the serial", map[string]syncv1.ServerState{
		"arecord.www": syncv1.StateInSync, "arecord.mail": syncv1.StateDivergent, "arecord.old": syncv1.StateMissing,
	})
	w.Eventually("the zone shows it", func() bool { return is("dnszone.example.test", syncv1.StateDivergent) })
	w.Eventually("lists show it", func() bool {
		l := w.list(query{namespace: ns})
		i := slices.IndexFunc(l.Items, func(s syncv1.SyncStatus) bool { return s.Name == "arecord.mail" })
		return l.Items[i].Servers[1].State == syncv1.StateDivergent
	})
}
