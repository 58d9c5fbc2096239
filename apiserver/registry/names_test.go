package registry

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

const (
	shadowed   = "OutOfSync primary-0=Shadowed"
	inSyncHere = "InSync primary-0=InSync"
)

// answersOf returns the addresses that a server answers with, as resolvers get them.
func answersOf(t *testing.T, s *bind.Server, name string) []string {
	t.Helper()
	reply, err := wire.Query(t.Context(), s.Addr, name, dns.TypeA)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, rr := range reply.Msg.Answer {
		if a, ok := rr.(*dns.A); ok {
			all = append(all, a.A.String())
		}
	}
	return all
}

// single is a world with one primary, and the records www and other in a zone on it.
func single(t *testing.T, o bind.Options) (*world, *bind.Server, *v1beta1.DNSZone) {
	t.Helper()
	w := newWorld(t)
	o.Transfer = w.Key
	primary := bind.Start(t, o)
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	w.Apply(w.Record(z, "other", "192.0.2.7"))
	w.Eventually("the zone takes the records", func() bool {
		return w.get("arecord.www").Zone == "example.test" && w.get("arecord.other").Zone == "example.test" && len(w.get("arecord.www").Servers) == 1
	})
	return w, primary, z
}

var bothRecords = bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"}

// listed returns an object as a list has it, without anything if it is not there.
func (w *world) listed(name string) *syncv1.SyncStatus {
	w.Helper()
	for _, s := range w.list(query{namespace: ns}).Items {
		if s.Name == name {
			return &s
		}
	}
	return &syncv1.SyncStatus{}
}

// everywhere checks that get, list and watch agree on what hides a record, and nothing else.
func (w *world) everywhere(events watching, by string) {
	w.Helper()
	s := w.get("arecord.www")
	row := s.Servers[0]
	if states(s) != shadowed || row.ShadowedBy != by || s.Status.Conditions[2].Reason != "Shadowed" || !strings.Contains(row.Message, "www.example.test. A") {
		w.Fatalf("get: %s, %+v", states(s), row)
	}
	if s := w.listed("arecord.www"); states(s) != shadowed || s.Servers[0].ShadowedBy != by || s.ResourceVersion != w.get("arecord.www").ResourceVersion {
		w.Errorf("list: %s, %+v", states(s), s.Servers[0])
	}
	events.until("arecord.www", shadowed)
	if zone := w.listed("dnszone.example.test"); states(zone) != shadowed || zone.Summary.RecordsOutOfSync != 1 || zone.Servers[0].ShadowedBy != by {
		w.Errorf("the zone: %s, %+v", states(zone), zone.Servers[0])
	}
	if s := w.get("arecord.other"); states(s) != inSyncHere {
		w.Errorf("another record: %s, %+v", states(s), s.Servers[0])
	}
}

// A record is not in sync while its server answers from a zone that nobody declares.
func TestForeignZoneShadows(t *testing.T) {
	w, primary, _ := single(t, bind.Options{Zones: []bind.Zone{bothRecords, {Name: "www.example.test."}}})
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	if got := answersOf(t, primary, "www.example.test."); len(got) > 0 {
		t.Fatalf("answers %v", got)
	}
	w.everywhere(events, "www.example.test")
}

// A zone that is declared below another one on the same servers hides records, and that is known without asking for each.
// Where both have the same data, the record is in sync.
func TestDeclaredZoneShadows(t *testing.T) {
	zones := bothRecords
	zones.Records += "\nsame A 192.0.2.7"
	same := bind.Zone{Name: "same.example.test.", Records: "@ A 192.0.2.7"}
	w := newWorld(t)
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{zones, {Name: "www.example.test."}, same}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, s.Addr)
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	for _, name := range []string{"www", "other", "same"} {
		w.Apply(w.Record(z, name, "192.0.2.7"))
		w.Eventually(name+" is there", func() bool { return states(w.listed("arecord."+name)) == inSyncHere })
	}
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("arecord.www", inSyncHere)
	for _, name := range []string{"www.example.test", "same.example.test"} {
		w.Apply(fakekube.Zone(name, "primary"))
	}
	events.until("arecord.www", shadowed)
	w.Eventually("a list knows, too", func() bool { return states(w.listed("arecord.www")) == shadowed })
	if s := w.listed("arecord.www"); s.Servers[0].ShadowedBy != "www.example.test" {
		t.Errorf("%+v", s.Servers[0])
	}
	if s := w.get("arecord.same"); states(s) != inSyncHere {
		t.Errorf("the same data: %s, %+v", states(s), s.Servers[0])
	}
	if s := w.listed("arecord.same"); states(s) != inSyncHere {
		t.Errorf("the same data in a list: %s, %+v", states(s), s.Servers[0])
	}
}

// A delegation to a zone on the same server, and its glue, are part of referrals and hidden by nothing.
func TestDelegatedZoneShadowsNothing(t *testing.T) {
	zones := bothRecords
	zones.Records += "\nsub NS ns.sub\nns.sub A 192.0.2.7"
	w, _, z := single(t, bind.Options{Zones: []bind.Zone{zones, {Name: "sub.example.test."}}})
	n := &v1beta1.NSRecord{Spec: v1beta1.NSRecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "sub"}, Nameserver: "ns.sub.example.test."}}
	n.Namespace, n.Name, n.UID, n.Generation, n.Labels = ns, "sub", "sub", 1, map[string]string{"zone": "example.test"}
	w.Apply(n)
	w.Apply(w.Record(z, "ns.sub", "192.0.2.7"))
	w.Apply(fakekube.Zone("sub.example.test", "primary"))
	for _, name := range []string{"nsrecord.sub", "arecord.ns.sub", "arecord.www", "dnszone.example.test"} {
		w.Eventually(name+" is in sync", func() bool { return states(w.get(name)) == inSyncHere && states(w.listed(name)) == inSyncHere })
	}
}

// A record is not in sync while a response policy makes the server answer something else.
func TestResponsePolicyShadows(t *testing.T) {
	policy := bind.Zone{Name: "policy.test.", Records: "www.example.test A 203.0.113.66"}
	w, primary, _ := single(t, bind.Options{
		Zones: []bind.Zone{bothRecords, policy},
		Extra: `response-policy { zone "policy.test"; } recursive-only no qname-wait-recurse no;`,
	})
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	if got := answersOf(t, primary, "www.example.test."); !slices.Equal(got, []string{"203.0.113.66"}) {
		t.Fatalf("answers %v", got)
	}
	w.everywhere(events, "")
	if observed := w.get("arecord.www").Servers[0].Observed; len(observed) != 1 || observed[0].Rdata[0] != "203.0.113.66" {
		t.Errorf("observed %+v", observed)
	}
	fakekube.Update(t, primary, "policy.test.", "www.example.test.policy.test.")
	w.Eventually("it is in sync without the policy", func() bool { return states(w.get("arecord.www")) == inSyncHere })
	if s := w.listed("arecord.www"); states(s) != inSyncHere {
		t.Errorf("list: %s", states(s))
	}
}

// A record is not in sync if a view answers everybody but us something else.
func TestViewShadows(t *testing.T) {
	w, primary, _ := single(t, bind.Options{Zones: []bind.Zone{bothRecords}})
	if got := states(w.get("arecord.www")); got != inSyncHere {
		t.Fatalf("without views: %s", got)
	}
	path := filepath.Join(primary.Dir, "named.conf")
	conf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(conf), `zone "example.test."`)
	public := "$TTL 300\n@ SOA ns1 hostmaster 10 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 203.0.113.66\nother A 192.0.2.7\n"
	if err := os.WriteFile(filepath.Join(primary.Dir, "public.zone"), []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	views := string(conf[:at]) + `view "ours" { match-clients { key "transfer."; key "update."; };` + string(conf[at:]) + `};
view "public" { match-clients { any; }; zone "example.test." { type primary; file "public.zone"; }; };
`
	if err := os.WriteFile(path, []byte(views), 0o600); err != nil {
		t.Fatal(err)
	}
	primary.Restart(t)
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	w.everywhere(events, "")
}

// Other data under the same serial is seen by whoever asks about an object, and from then on by everybody.
func TestFileEditedUnderTheSameSerial(t *testing.T) {
	w, primary, _ := single(t, bind.Options{Zones: []bind.Zone{bothRecords}})
	rndc := func(args ...string) {
		t.Helper()
		if out, err := primary.Rndc(args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	rndc("freeze", "example.test")
	path := filepath.Join(primary.Dir, "example.test.zone")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(file), "192.0.2.7", "203.0.113.66")), 0o600); err != nil {
		t.Fatal(err)
	}
	rndc("thaw", "example.test")
	w.Eventually("the server answers with the file", func() bool {
		return slices.Equal(answersOf(t, primary, "www.example.test."), []string{"203.0.113.66"})
	})
	const divergent = "OutOfSync primary-0=Divergent"
	if s := w.get("arecord.www"); s.Status.InSync {
		t.Errorf("get: %s, %+v", states(s), s.Servers[0])
	}
	w.Eventually("it is seen that the content is another one", func() bool { return states(w.get("arecord.www")) == divergent })
	if s := w.listed("arecord.other"); states(s) != divergent || *s.Servers[0].Serial != 10 {
		t.Errorf("list: %s, %+v", states(s), s.Servers[0])
	}
}

// A foreign DNAME above a record hides it.
func TestDNAMEHidesARecord(t *testing.T) {
	zones := bothRecords
	zones.Records += "\nwww.sub A 192.0.2.7"
	w, primary, z := single(t, bind.Options{Zones: []bind.Zone{zones}})
	w.Apply(w.Record(z, "www.sub", "192.0.2.7"))
	w.Eventually("the record is in sync", func() bool { return states(w.listed("arecord.www.sub")) == inSyncHere })
	update(t, primary, "example.test.", "sub.example.test. 300 DNAME example.org.")
	const divergent = "OutOfSync primary-0=Divergent"
	for _, name := range []string{"arecord.www.sub", "dnszone.example.test"} {
		s := w.listed(name)
		if row := s.Servers[0]; states(s) != divergent || len(row.Observed) != 1 || row.Observed[0].Type != "DNAME" || !strings.HasSuffix(row.Message, "an undeclared DNAME at sub.example.test. hides declared data") {
			t.Errorf("%s: %s, %+v", name, states(s), row)
		}
	}
	if s := w.get("arecord.other"); states(s) != inSyncHere {
		t.Errorf("another record: %s", states(s))
	}
}
