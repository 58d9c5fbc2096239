package observe

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// What a resolver keeps depends on what the server answered, which is not always what it holds at the name.
func TestKept(t *testing.T) {
	const minimum, longer = 60, 7200
	soa := rrset.SOA{Serial: 7, Minimum: minimum, TTL: 300}
	set := func(name string, rrtype uint16, ttl uint32) rrset.RRset {
		return rrset.RRset{Key: rrset.Key{Name: name + "example.com.", Type: rrtype}, TTL: ttl, Rdata: []string{"x"}}
	}
	apex := set("", dns.TypeNS, longer) // never what a question inside the zone is answered with
	for name, tc := range map[string]struct {
		soa  rrset.SOA
		sets []rrset.RRset
		of   string
		rr   uint16
		want uint32
	}{
		"data":                                     {soa, []rrset.RRset{set("www.", dns.TypeA, 5)}, "www.", dns.TypeA, 5},
		"no such name":                             {soa, nil, "www.", dns.TypeA, minimum},
		"no such name, and the SOA has less":       {rrset.SOA{Minimum: minimum, TTL: 20}, nil, "www.", dns.TypeA, 20},
		"no such type":                             {soa, []rrset.RRset{set("www.", dns.TypeTXT, longer)}, "www.", dns.TypeA, minimum},
		"nothing at the apex":                      {soa, nil, "", dns.TypeTXT, minimum},
		"an alias before an address":               {soa, []rrset.RRset{set("www.", dns.TypeCNAME, 5)}, "www.", dns.TypeA, 5},
		"an address before an alias":               {soa, []rrset.RRset{set("www.", dns.TypeA, longer)}, "www.", dns.TypeCNAME, longer},
		"a short-lived address before an alias":    {soa, []rrset.RRset{set("www.", dns.TypeA, 5)}, "www.", dns.TypeCNAME, minimum},
		"a wildcard":                               {soa, []rrset.RRset{set("*.", dns.TypeA, longer)}, "www.", dns.TypeA, longer},
		"a wildcard far above":                     {soa, []rrset.RRset{set("*.", dns.TypeA, longer)}, "a.b.c.", dns.TypeA, longer},
		"a wildcard's alias":                       {soa, []rrset.RRset{set("*.", dns.TypeCNAME, longer)}, "www.", dns.TypeA, longer},
		"a wildcard before an alias":               {soa, []rrset.RRset{set("*.", dns.TypeMX, longer)}, "www.", dns.TypeCNAME, longer},
		"a wildcard of another type":               {soa, []rrset.RRset{set("*.", dns.TypeMX, longer)}, "www.", dns.TypeA, minimum},
		"a name that exists has no wildcard":       {soa, []rrset.RRset{set("*.", dns.TypeA, longer), set("www.", dns.TypeMX, 5)}, "www.", dns.TypeA, minimum},
		"nor has one below a name that exists":     {soa, []rrset.RRset{set("*.", dns.TypeA, longer), set("b.", dns.TypeMX, 5)}, "a.b.", dns.TypeA, minimum},
		"a wildcard itself, when there is none":    {soa, nil, "*.", dns.TypeA, minimum},
		"a delegation at the name":                 {soa, []rrset.RRset{set("sub.", dns.TypeNS, longer)}, "sub.", dns.TypeA, longer},
		"a delegation above the name":              {soa, []rrset.RRset{set("sub.", dns.TypeNS, longer)}, "www.sub.", dns.TypeA, longer},
		"a delegation elsewhere":                   {soa, []rrset.RRset{set("sub.", dns.TypeNS, longer)}, "www.", dns.TypeA, minimum},
		"a name outside the zone is nobody's here": {soa, nil, "other-", dns.TypeA, minimum},
	} {
		m := NewMirror("example.com.", tc.soa, append(tc.sets, apex)...)
		if got, want := m.CacheDuration(rrset.Key{Name: tc.of + "example.com.", Type: tc.rr}), time.Duration(tc.want)*time.Second; got != want {
			t.Errorf("%s: kept for %s, want %s", name, got, want)
		}
	}
}
