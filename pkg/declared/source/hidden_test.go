package source

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// What hides data is what named makes of it: beside the declared data, a server has a delegation with glue, a DNAME, and two zones
// below. It is asked for all that the zone declares, glue of declared delegations aside, which is in referrals alone.
func TestHidesWhatBINDDoesNotAnswerWith(t *testing.T) {
	var records []v1beta1.Record
	for i, name := range []string{
		"plain", "cut", "www.cut", "ns.cut", "alias", "www.alias", "child", "www.child", "ns.sub", "ns.deep.cut", "ns.deep.child", "ns.both", "x.plain",
	} {
		records = append(records, aRecord(object(fmt.Sprint("a", i), 1), name, "192.0.2.1"))
	}
	for i, name := range []string{"sub", "both", "deep.cut", "deep.child"} {
		records = append(records, &v1beta1.NSRecord{ObjectMeta: object(fmt.Sprint("ns", i), 1), Spec: v1beta1.NSRecordSpec{RecordCommon: common(name), Nameserver: "ns." + name}})
	}
	z, err := Build(exampleZone(), Objects(records), Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := zoneFile(z, 1) + "cut.example.com. 60 IN NS ns.cut.example.com.\nbelow.sub.example.com. 60 IN NS ns.sub.example.com.\nalias.example.com. 60 IN DNAME example.net.\n"
	zones := []named.Zone{{Name: z.Name, File: file}, {Name: "child." + z.Name}, {Name: "both." + z.Name}, {Name: "none." + z.Name}}
	server := named.Start(t, named.Options{Zones: zones, Extra: extra})
	by := []rrset.Key{{Name: "cut." + z.Name, Type: dns.TypeNS}, {Name: "below.sub." + z.Name, Type: dns.TypeNS}, {Name: "alias." + z.Name, Type: dns.TypeDNAME}}
	for _, zone := range zones[1:] {
		by = append(by, rrset.Key{Name: zone.Name})
	}
	var want, got []string
	for set := range z.All() {
		delegates := set.Type == dns.TypeNS && set.Name != z.Name
		if z.IsDelegated(set.Name) && !delegates {
			continue
		}
		if !answersWith(t, server, set, delegates) {
			want = append(want, set.String())
		}
		if slices.ContainsFunc(by, func(by rrset.Key) bool { return z.Hides(by, set.Key) }) {
			got = append(got, set.String())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 8 {
		t.Errorf("%d hidden (-by the server +by the rule):\n%s", len(want), diff)
	}
}

// answersWith reports whether a server answers with an RRset: with authority, or with a referral.
func answersWith(t *testing.T, s *named.Server, set rrset.RRset, delegates bool) bool {
	t.Helper()
	reply, err := wire.Query(t.Context(), s.Addr, set.Name, set.Type)
	if err != nil {
		t.Fatal(err)
	}
	if delegates && !reply.Msg.Authoritative {
		return slices.ContainsFunc(reply.Msg.Ns, func(r dns.RR) bool { return r.Header().Name == set.Name && r.Header().Rrtype == dns.TypeNS })
	}
	return reply.Msg.Authoritative && slices.ContainsFunc(reply.Msg.Answer, func(r dns.RR) bool { return r.Header().Name == set.Name && r.Header().Rrtype == set.Type })
}
