package syncstatus

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/ledger"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Where each writer has values of its own, a record is in sync if its own values are served; those of others are named.
func TestValuesOfOtherOwners(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	d := NewDesiredState(z, desired, []source.Object{r}, nil)
	key := rrset.Key{Name: "www.example.com.", Type: dns.TypeA}
	want, _ := desired.Get(key)
	const us, them = "berlin/dns/corp", "paris/dns/corp"
	server := observe.Server{Namespace: z.Namespace, Provider: "corp", Pod: "corp/a", Role: observe.Primary, Shared: true, Owner: us,
		Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, 1}), 53)}
	record, err := ledger.RecordName("example.com.", key.Name)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(entries ...ledger.Entry) rrset.RRset {
		var rdata []string
		for _, e := range entries {
			rdata = append(rdata, e.Rdata())
		}
		return rrset.New(rrset.Key{Name: record, Type: dns.TypeTXT}, ledger.TTL, rdata...)
	}
	entry := func(owner string, ttl uint32, values ...string) ledger.Entry {
		c := ledger.Claim{TTL: ttl, Values: map[ledger.Hash]struct{}{}}
		for _, v := range values {
			c.Values[ledger.HashOf(dns.TypeA, v)] = struct{}{}
		}
		return ledger.Entry{Owner: owner, Claims: map[uint16]ledger.Claim{dns.TypeA: c}}
	}
	own, other, former := want.Rdata[0], "198.51.100.2", "198.51.100.3"
	for name, test := range map[string]struct {
		has    rrset.RRset
		claims rrset.RRset
		state  syncv1.ServerState
		says   string
	}{
		"alone": {want, claims(entry(us, want.TTL, own)), syncv1.StateInSync, ""},
		"beside another": {rrset.New(key, want.TTL, own, other), claims(entry(us, want.TTL, own), entry(them, want.TTL, other)),
			syncv1.StateInSync, other + " (" + them + ")"},
		"with their TTL":    {rrset.New(key, 1, own, other), claims(entry(us, want.TTL, own), entry(them, 1, other)), syncv1.StateInSync, other},
		"with another TTL":  {rrset.New(key, 2, own, other), claims(entry(us, want.TTL, own), entry(them, 1, other)), syncv1.StateDivergent, other},
		"beside nobody's":   {rrset.New(key, want.TTL, own, other), claims(entry(us, want.TTL, own)), syncv1.StateInSync, other + " (nobody's)"},
		"with a former one": {rrset.New(key, want.TTL, own, former), claims(entry(us, want.TTL, own, former)), syncv1.StateDivergent, ""},
		"not there":         {rrset.New(key, want.TTL, other), claims(entry(us, want.TTL, own), entry(them, want.TTL, other)), syncv1.StateDivergent, other},
		"nothing there":     {rrset.RRset{Key: key}, claims(entry(us, want.TTL, own)), syncv1.StateMissing, ""},
	} {
		theirs := rrset.New(rrset.Key{Name: "paris.example.com.", Type: dns.TypeA}, 60, other)
		theirLedger := claims(entry(them, 60, other))
		theirLedger.Name, _ = ledger.RecordName("example.com.", theirs.Name)
		seen := []observe.Observation{holds(desired, 7, test.has, test.claims, theirs, theirLedger)}
		j := Evaluate(d, []observe.Server{server}, seen, asked, History{})
		row := j.RecordStatus(r).Servers[0]
		if row.State != test.state || !strings.Contains(row.Message, test.says) {
			t.Errorf("%s: %s %q", name, row.State, row.Message)
		}
		counts := *j.ZoneStatus(nil).Servers[0].Records
		if off := counts.OutOfSync > 0; off != (test.state != syncv1.StateInSync) || counts.Undeclared > 0 {
			t.Errorf("%s: counted %+v", name, counts)
		}
		// A comparison that follows is what one from scratch would be.
		before := compareFully(d, holds(desired, 6).Mirror, nil, true, us)
		from, after := compareFully(d, seen[0].Mirror, nil, true, us), before.updated(d, seen[0].Mirror)
		if from.rrsetCounts != after.rrsetCounts || from.off.Len() != after.off.Len() {
			t.Errorf("%s: %+v, from scratch %+v", name, after.rrsetCounts, from.rrsetCounts)
		}
	}
}
