package syncstatus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func delegation(name string, hosts ...string) rrset.RRset {
	return rrset.New(rrset.Key{Name: name, Type: dns.TypeNS}, 300, hosts...)
}

// A server that holds what is declared does not serve it when a delegation stands over it.
func TestForeignDelegation(t *testing.T) {
	for name, tc := range map[string]struct {
		record, cut string
		host        string
		hidden      bool
	}{
		"at the name":        {"www", "www.example.com.", "ns.example.org.", true},
		"above the name":     {"www.sub", "sub.example.com.", "ns.example.org.", true},
		"far above the name": {"a.b.c.sub", "sub.example.com.", "ns.example.org.", true},
		"below the name":     {"sub", "www.sub.example.com.", "ns.example.org.", false},
		"beside the name":    {"www.subs", "sub.example.com.", "ns.example.org.", false},
		// A question for it gets a referral (source.Zone.Hides is compared with named).
		"the address is glue":    {"ns.sub", "sub.example.com.", "ns.sub.example.com.", true},
		"glue of something else": {"www.sub", "sub.example.com.", "ns.sub.example.com.", true},
	} {
		t.Run(name, func(t *testing.T) {
			z := testZone()
			r := testRecord(z, func(r *v1beta1.ARecord) { r.Spec.Name = tc.record })
			desired := build(t, z, r)
			d, _ := desired.Declarations.Get(source.ID{ObjectKey: source.KeyOf(r)})
			r.Status.RecordHash, r.Status.PublishedName = source.Hash(d), tc.record+".example.com"
			cut := delegation(tc.cut, tc.host)
			j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{holds(desired, 7), holds(desired, 7, cut)}, asked, History{})
			for _, s := range []*syncv1.SyncStatus{note(j.RecordStatus(r)), note(j.ZoneStatus(nil))} {
				row := s.Servers[1]
				if !tc.hidden {
					if row.State != syncv1.StateInSync || row.Message != "" || len(row.Observed) > 0 {
						t.Errorf("%s: %+v, want it in sync", s.Name, row)
					}
					continue
				}
				says := "an undeclared delegation of " + tc.cut + " hides declared data"
				if row.State != syncv1.StateDivergent || !strings.HasSuffix(row.Message, says) || s.Status.Phase != syncv1.PhaseOutOfSync {
					t.Errorf("%s is %s: %s, %q", s.Name, s.Status.Phase, row.State, row.Message)
				}
				if diff := cmp.Diff([]syncv1.RRset{renderRRset(cut.Key, cut)}, row.Observed); diff != "" {
					t.Errorf("%s shows (-want +got):\n%s", s.Name, diff)
				}
				if s.Servers[0].State != syncv1.StateInSync {
					t.Errorf("%s: the other server is %s", s.Name, s.Servers[0].State)
				}
			}
			if row := j.ZoneStatus(nil).Servers[1]; tc.hidden && *row.Records != (syncv1.RecordCounts{InSync: 1, OutOfSync: 1, Undeclared: 1}) {
				t.Errorf("counted %+v", *row.Records)
			}
		})
	}
}

// A comparison that follows a server's changes is what one from scratch would be, whatever hides or shows itself on the way.
func TestDelegationsComeAndGo(t *testing.T) {
	z := testZone()
	r := testRecord(z, func(r *v1beta1.ARecord) { r.Spec.Name = "www.sub" })
	desired := build(t, z, r)
	d := NewDesiredState(z, desired, []source.Object{r}, nil)
	other := rrset.RRset{Key: rrset.Key{Name: "other.example.com.", Type: dns.TypeTXT}, TTL: 60, Rdata: []string{`"x"`}}
	steps := [][]rrset.RRset{
		{}, {delegation("sub.example.com.", "ns.example.org.")}, {delegation("sub.example.com.", "ns.example.org."), other},
		{delegation("sub.example.com.", "www.sub.example.com."), other}, {delegation("example.com.", "ns9.example.net.")}, {other}, {},
	}
	var last *serverComparison
	hidden := 0
	for i, step := range steps {
		m := holds(desired, 7, step...).Mirror
		want := compareFully(d, m, nil, false, "")
		if last == nil {
			last = want
			continue
		}
		got := last.updated(d, m)
		if got.rrsetCounts != want.rrsetCounts || got.off.Len() != want.off.Len() || !cmp.Equal(got.shown, want.shown) {
			t.Errorf("step %d: %+v, %v; from scratch %+v, %v", i, got.rrsetCounts, got.shown, want.rrsetCounts, want.shown)
		}
		www := rrset.Key{Name: "www.sub.example.com.", Type: dns.TypeA}
		if _, off := got.off.Get(www); off {
			hidden++
		}
		_, before := undeclaredCut(desired, last.mirror, "sub.example.com.")
		_, now := undeclaredCut(desired, m, "sub.example.com.")
		if moved, is := d.HidesOthers("sub.example.com.", last.mirror, m), before != now || i == 3; moved != is { // another delegation is shown
			t.Errorf("step %d: hides others otherwise than before: %t", i, moved)
		}
		last = got
	}
	if hidden != 3 {
		t.Errorf("the record was hidden in %d steps, want 3", hidden)
	}
}

// Whether a delegation that is declared is as it should be is told of it alone: the addresses below are glue by declaration.
func TestDeclaredDelegation(t *testing.T) {
	z := testZone()
	r := testRecord(z, func(r *v1beta1.ARecord) { r.Spec.Name = "ns.sub" })
	n := &v1beta1.NSRecord{Spec: v1beta1.NSRecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "sub"}, Nameserver: "ns.sub.example.com."}}
	n.Namespace, n.Name, n.UID = "dns", "sub", "sub"
	objects := []source.Object{r, n}
	desired, err := source.Build(z, objects, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other := delegation("sub.example.com.", "ns.example.org.")
	glued := holds(desired, 7, delegation("deep.sub.example.com.", "ns.deep.sub.example.com.")).Mirror
	for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT} {
		if _, found := hidingDelegation(desired, glued, rrset.Key{Name: "ns.deep.sub.example.com.", Type: rrtype}); found {
			t.Errorf("%s of a name server below a declared delegation is hidden by another one below that", dns.Type(rrtype))
		}
	}
	j := Evaluate(NewDesiredState(z, desired, objects, nil), servers(), []observe.Observation{holds(desired, 7), holds(desired, 7, other)}, asked, History{})
	if row := j.RecordStatus(r).Servers[1]; row.State != syncv1.StateInSync {
		t.Errorf("the address: %+v", row)
	}
	if row := j.RecordStatus(n).Servers[1]; row.State == syncv1.StateInSync || strings.Contains(row.Message, "hides") {
		t.Errorf("the delegation: %+v", row)
	}
}

// What a server answers counts for more than what it holds, as long as that is what it was asked about.
func TestShadowed(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	held, _ := desired.Get(wwwA)
	other := rrset.New(wwwA, held.TTL, "203.0.113.66")
	none := rrset.RRset{Key: wwwA}
	soa := func(zone string) observe.Answer {
		k := rrset.Key{Name: zone, Type: dns.TypeSOA}
		return observe.Answer{Held: rrset.RRset{Key: k}, Served: rrset.New(k, 300, "ns1."+zone+" x."+zone+" 1 2 3 4 5")}
	}
	below := soa("www.example.com.")
	for name, tc := range map[string]struct {
		answers []observe.Answer
		state   syncv1.ServerState
		by      string
		says    string
	}{
		"nobody asked":                {nil, syncv1.StateInSync, "", ""},
		"as it is held":               {[]observe.Answer{{Held: held, Served: held}}, syncv1.StateInSync, "", ""},
		"other data":                  {[]observe.Answer{{Held: held, Served: other}}, syncv1.StateShadowed, "", "holds the data, but answers otherwise for www.example.com. A: look for another zone, a view or a response policy"},
		"no data":                     {[]observe.Answer{{Held: held, Served: none, Rcode: dns.RcodeNameError}}, syncv1.StateShadowed, "", "holds the data, but answers NXDOMAIN without it for www.example.com. A: look for another zone, a view or a response policy"},
		"no data, of another zone":    {[]observe.Answer{{Held: held, Served: none, Zone: "www.example.com."}}, syncv1.StateShadowed, "www.example.com", "holds the data, but answers for www.example.com. A from its zone www.example.com., which hides it: declare the data there"},
		"about other content":         {[]observe.Answer{{Held: other, Served: other}, {Held: other, Served: held}}, syncv1.StateInSync, "", ""},
		"a zone below":                {[]observe.Answer{below}, syncv1.StateShadowed, "www.example.com", "holds the data, but answers for www.example.com. A from its zone www.example.com., which hides it: declare the data there"},
		"a zone below has it, too":    {[]observe.Answer{below, {Held: held, Served: held}}, syncv1.StateInSync, "", ""},
		"a zone beside":               {[]observe.Answer{soa("w.example.com.")}, syncv1.StateInSync, "", ""},
		"a zone below is not loaded":  {[]observe.Answer{{Held: below.Held, Served: below.Held, Rcode: dns.RcodeServerFailure}}, syncv1.StateShadowed, "www.example.com", "holds the data, but answers for www.example.com. A from its zone www.example.com., which hides it: declare the data there"},
		"a zone below is gone":        {[]observe.Answer{{Held: below.Held, Served: below.Held, Rcode: dns.RcodeNameError}}, syncv1.StateInSync, "", ""},
		"no answer":                   {[]observe.Answer{{Held: held, Served: none, Rcode: observe.NoReply}}, syncv1.StateUnreachable, "", "answers for the zone, but not for www.example.com. A"},
		"other data at another TTL":   {[]observe.Answer{{Held: held, Served: rrset.New(wwwA, 5, held.Rdata...)}}, syncv1.StateShadowed, "", "holds the data, but answers otherwise for www.example.com. A: look for another zone, a view or a response policy"},
		"the answer is about another": {[]observe.Answer{{Held: rrset.RRset{Key: rrset.Key{Name: "x.example.com.", Type: dns.TypeA}}, Served: other}}, syncv1.StateInSync, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := holds(desired, 7)
			o.Answers = map[rrset.Key]observe.Answer{}
			for _, a := range tc.answers {
				o.Answers[a.Held.Key] = a
			}
			d := NewDesiredState(z, desired, []source.Object{r}, nil)
			before := Evaluate(d, servers(), []observe.Observation{holds(desired, 7), holds(desired, 7)}, asked, History{}).ZoneStatus(nil)
			j := Evaluate(d, servers(), []observe.Observation{holds(desired, 7), o}, asked, History{})
			for _, s := range []*syncv1.SyncStatus{note(j.RecordStatus(r)), note(j.ZoneStatus(nil))} {
				row := s.Servers[1]
				if row.State != tc.state || row.ShadowedBy != tc.by || row.Message != tc.says || s.Status.InSync != (tc.state == syncv1.StateInSync) {
					t.Errorf("%s: %s %q %q, %s", s.Name, row.State, row.ShadowedBy, row.Message, s.Status.Phase)
				}
				if s.Servers[0].State != syncv1.StateInSync {
					t.Errorf("%s: the other server is %s", s.Name, s.Servers[0].State)
				}
			}
			out := int32(0)
			if tc.state != syncv1.StateInSync {
				out = 1
			}
			if got := j.ZoneStatus(nil).Summary.RecordsOutOfSync; got != out || before.Summary.RecordsOutOfSync != 0 {
				t.Errorf("%d records are out of sync, want %d", got, out)
			}
		})
	}
}

// An object that is being deleted is not in sync where a server that is behind still answers with a name that it had before.
func TestDeletedObjectIsOutOfSyncWhereItsFormerNameIsServed(t *testing.T) {
	z := testZone()
	now := metav1.Now()
	r := testRecord(z, func(r *v1beta1.ARecord) {
		r.DeletionTimestamp = &now
		r.Annotations = map[string]string{v1beta1.FormerNamesAnnotation: "old/A"}
	})
	desired := build(t, z, r)
	old := rrset.New(rrset.Key{Name: "old.example.com.", Type: dns.TypeA}, 300, "192.0.2.1")
	j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{holds(desired, 7), holds(desired, 6, old)}, asked, History{})
	s := j.RecordStatus(r)
	if s.Servers[0].State != syncv1.StateInSync || s.Servers[1].State != syncv1.StateStale || s.Status.InSync {
		t.Errorf("%s: %s, %s", s.Status.Phase, s.Servers[0].State, s.Servers[1].State)
	}
}
