package syncstatus

import (
	"crypto"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// keyAndDigest returns a DNSKEY RRset of a zone and the DS RRset of its key.
func keyAndDigest(t *testing.T, zone string) (key, ds rrset.RRset) {
	t.Helper()
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	if private, err := k.Generate(256); err != nil || private.(crypto.Signer) == nil {
		t.Fatal(err)
	}
	set := func(rr dns.RR) rrset.RRset {
		key, _, rdata := rrset.FromRR(rr)
		return rrset.New(key, 300, rdata)
	}
	return set(k), set(k.ToDS(dns.SHA256))
}

func TestDelegated(t *testing.T) {
	const child = "sub.example.com."
	key, ds := keyAndDigest(t, child)
	_, otherDS := keyAndDigest(t, child)
	at := func(name string, rrtype uint16, rdata ...string) rrset.RRset {
		return rrset.New(rrset.Key{Name: name, Type: rrtype}, 300, rdata...)
	}
	cut := delegation(child, "ns1."+child)
	glue := at("ns1."+child, dns.TypeA, "192.0.2.1")
	for name, tc := range map[string]struct {
		parent, zone []rrset.RRset
		reason, says string
	}{
		"as the zone has it":      {[]rrset.RRset{cut, glue}, nil, "Delegated", "example.com delegates to ns1.sub.example.com., as the zone has it"},
		"not delegated":           {nil, nil, "NotDelegated", "example.com has no NS records for sub.example.com."},
		"other name servers":      {[]rrset.RRset{delegation(child, "ns.example.net.")}, nil, "NameServersDiffer", "example.com delegates to ns.example.net., the zone has ns1.sub.example.com."},
		"other glue":              {[]rrset.RRset{cut, at("ns1."+child, dns.TypeA, "192.0.2.2")}, nil, "GlueDiffers", "for ns1.sub.example.com. A, example.com has 192.0.2.2, the zone has 192.0.2.1"},
		"no glue":                 {[]rrset.RRset{cut}, nil, "GlueDiffers", "for ns1.sub.example.com. A, example.com has none, the zone has 192.0.2.1"},
		"signed":                  {[]rrset.RRset{cut, glue, ds}, []rrset.RRset{key}, "Delegated", "delegates"},
		"signed without DS":       {[]rrset.RRset{cut, glue}, []rrset.RRset{key}, "SignerMissing", "the zone is signed, but example.com has no DS records for it"},
		"DS of an unsigned zone":  {[]rrset.RRset{cut, glue, ds}, nil, "SignerDiffers", "none is of a key of the zone"},
		"DS of another key":       {[]rrset.RRset{cut, glue, otherDS}, []rrset.RRset{key}, "SignerDiffers", "none is of a key of the zone"},
		"DS of that key and more": {[]rrset.RRset{cut, glue, at(child, dns.TypeDS, append(otherDS.Rdata, ds.Rdata...)...)}, []rrset.RRset{key}, "Delegated", "delegates"},
	} {
		t.Run(name, func(t *testing.T) {
			above := testZone()
			below := testZone(func(z *v1beta1.DNSZone) {
				z.Name, z.UID, z.Spec.ZoneName = "sub", "sub", "sub.example.com"
				z.Spec.SOARecord.PrimaryNS = "ns1." + child
				z.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1." + child, IPv4Address: "192.0.2.1"}}
			})
			judge := func(z *v1beta1.DNSZone, extra []rrset.RRset) *Evaluation {
				desired, err := source.Build(z, nil, source.Options{})
				if err != nil {
					t.Fatal(err)
				}
				o := holds(desired, 7, extra...)
				return Evaluate(NewDesiredState(z, desired, nil, nil), servers(), []observe.Observation{o, o}, asked, History{})
			}
			parent := judge(above, tc.parent)
			s := note(judge(below, tc.zone).ZoneStatus(parent))
			c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionDelegated)
			if c == nil || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) || (c.Status == "True") != (tc.reason == "Delegated") {
				t.Errorf("%+v, want %s: %s", c, tc.reason, tc.says)
			}
			if s.Status.Phase != syncv1.PhaseInSync {
				t.Errorf("the phase is %s", s.Status.Phase)
			}
			unknown := Evaluate(parent.DesiredState, servers(), []observe.Observation{silent(), silent()}, asked, History{})
			if c := meta.FindStatusCondition(note(judge(below, nil).ZoneStatus(unknown)).Status.Conditions, syncv1.ConditionDelegated); c.Status != "Unknown" {
				t.Errorf("without the parent: %+v", c)
			}
		})
	}
}
