package syncstatus

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestNameServers(t *testing.T) {
	const zone = "example.com."
	soa := rrset.SOA{MName: "ns1.example.com.", Serial: 7}
	set := func(name string, rrtype uint16, data ...string) rrset.RRset {
		return rrset.New(rrset.Key{Name: name, Type: rrtype}, 300, data...)
	}
	mirror := func(sets ...rrset.RRset) *observe.Mirror { return observe.NewMirror(zone, soa, sets...) }
	ns := func(names ...string) rrset.RRset { return set(zone, dns.TypeNS, names...) }
	known := func(name, address string, instances ...string) syncv1.NameServer {
		return syncv1.NameServer{Name: name, Addresses: []string{address}, LeadsTo: syncv1.TargetServer, Instances: instances}
	}
	for name, tc := range map[string]struct {
		mirrors [2]*observe.Mirror // of the primary and the secondary
		want    []syncv1.NameServer
	}{
		"nobody has answered": {},
		"the Service of an instance": {
			[2]*observe.Mirror{mirror(ns("ns1.example.com."), set("ns1.example.com.", dns.TypeA, "10.96.0.1")), nil},
			[]syncv1.NameServer{known("ns1.example.com.", "10.96.0.1", "primary-0")},
		},
		"a pod": {
			[2]*observe.Mirror{mirror(ns("ns1.example.com."), set("ns1.example.com.", dns.TypeA, "10.244.0.2")), nil},
			[]syncv1.NameServer{known("ns1.example.com.", "10.244.0.2", "elsewhere/secondary-0")},
		},
		"IPv6, however it is written": {
			[2]*observe.Mirror{nil, mirror(ns("ns1.example.com."), set("ns1.example.com.", dns.TypeAAAA, "fd00:0:0::3"))},
			[]syncv1.NameServer{known("ns1.example.com.", "fd00:0:0::3", "elsewhere/secondary-0")},
		},
		"one name for two servers": {
			[2]*observe.Mirror{mirror(ns("ns.example.com."), set("ns.example.com.", dns.TypeA, "10.96.0.1", "10.244.0.2")), nil},
			[]syncv1.NameServer{{
				Name: "ns.example.com.", Addresses: []string{"10.244.0.2", "10.96.0.1"}, LeadsTo: syncv1.TargetServer,
				Instances: []string{"primary-0", "elsewhere/secondary-0"},
			}},
		},
		"somebody else's address": {
			[2]*observe.Mirror{mirror(ns("ns1.example.com."), set("ns1.example.com.", dns.TypeA, "192.0.2.53")), nil},
			[]syncv1.NameServer{{
				Name: "ns1.example.com.", Addresses: []string{"192.0.2.53"}, LeadsTo: syncv1.TargetUnknown,
				Message: "no address belongs to a pod or Service of this zone: they may belong to a load balancer or another server",
			}},
		},
		"outside the zone": {
			[2]*observe.Mirror{mirror(ns("ns1.example.org.")), nil},
			[]syncv1.NameServer{{
				Name: "ns1.example.org.", LeadsTo: syncv1.TargetUnknown, Message: "the name is outside the zone: its addresses are not known here",
			}},
		},
		"a load balancer's address": {
			[2]*observe.Mirror{mirror(ns("ns1.example.com."), set("ns1.example.com.", dns.TypeA, "203.0.113.10")), nil},
			[]syncv1.NameServer{known("ns1.example.com.", "203.0.113.10", "primary-0")},
		},
		"no address": {
			[2]*observe.Mirror{mirror(ns("ns1.example.com."), set("other.example.com.", dns.TypeA, "10.96.0.1")), nil},
			[]syncv1.NameServer{{
				Name: "ns1.example.com.", LeadsTo: syncv1.TargetNowhere, Message: "the name is inside the zone and has no address: resolvers cannot reach it",
			}},
		},
		"below a delegation, and under a wildcard": {
			[2]*observe.Mirror{mirror(ns("a.team.example.com.", "deep.wild.example.com."),
				set("team.example.com.", dns.TypeNS, "ns.team.example.org."), set("*.wild.example.com.", dns.TypeA, "10.96.0.1")), nil},
			[]syncv1.NameServer{
				{Name: "a.team.example.com.", LeadsTo: syncv1.TargetUnknown, Message: "the zone itself does not have the addresses: the name is below a delegation or matches a wildcard"},
				{Name: "deep.wild.example.com.", LeadsTo: syncv1.TargetUnknown, Message: "the zone itself does not have the addresses: the name is below a delegation or matches a wildcard"},
			},
		},
		"the servers disagree": {
			[2]*observe.Mirror{
				mirror(ns("ns1.example.com.", "ns2.example.com."), set("ns1.example.com.", dns.TypeA, "10.96.0.1"), set("ns2.example.com.", dns.TypeA, "10.244.0.2")),
				mirror(ns("ns1.example.com.", "rogue.example.net."), set("ns1.example.com.", dns.TypeA, "10.96.0.1")),
			},
			[]syncv1.NameServer{
				known("ns1.example.com.", "10.96.0.1", "primary-0"),
				{
					Name: "ns2.example.com.", Addresses: []string{"10.244.0.2"}, LeadsTo: syncv1.TargetServer, Instances: []string{"elsewhere/secondary-0"},
					MissingOn: []string{"secondary-0-0"}, Message: "not published by secondary-0-0",
				},
				{
					Name: "rogue.example.net.", LeadsTo: syncv1.TargetUnknown, MissingOn: []string{"primary-0-0"},
					Message: "the name is outside the zone: its addresses are not known here; not published by primary-0-0",
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			z := &v1beta1.DNSZone{}
			z.Namespace, z.Spec.ZoneName = "dns", "example.com"
			servers := []observe.Server{
				{Namespace: "dns", Instance: "primary-0", Pod: "primary-0-0", Role: observe.Primary,
					Addr: netip.MustParseAddrPort("10.244.0.1:53"), Service: netip.MustParseAddr("10.96.0.1"),
					ServiceAddresses: []netip.Addr{netip.MustParseAddr("203.0.113.10")}},
				{Namespace: "elsewhere", Instance: "secondary-0", Pod: "secondary-0-0", Role: observe.Secondary,
					Addr: netip.MustParseAddrPort("10.244.0.2:53"), Service: netip.MustParseAddr("fd00::3")},
			}
			answers := make([]observe.Observation, len(servers))
			for i, m := range tc.mirrors {
				answers[i] = observe.Observation{At: asked, Rcode: observe.NoReply}
				if m != nil {
					answers[i] = observe.Observation{At: asked, Authoritative: true, Serial: 7, SOA: soa, Mirror: m}
				}
			}
			got := Evaluate(NewDesiredState(z, nil, nil, nil), servers, answers, asked, History{}).ZoneStatus(nil).NameServers
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A zone whose name servers wait for addresses is not in sync, whatever its servers keep, and says for what it waits; its records are. A
// comparison that follows from an older one says the same as one from scratch.
func TestNameServersThatWait(t *testing.T) {
	z := testZone(func(z *v1beta1.DNSZone) { z.Spec.SOARecord.PrimaryNS = "ns1.example.com." })
	r := testRecord(z)
	kept := rrset.New(rrset.Key{Name: "ns1.example.com.", Type: dns.TypeA}, 3600, "203.0.113.1")
	at := func(addresses ...netip.Addr) *source.Zone {
		desired, err := source.Build(z, []source.Object{r}, source.Options{Servers: []source.Server{{Service: "dns/primary-0", Primary: true, Exposed: true, Addresses: addresses}}})
		if err != nil {
			t.Fatal(err)
		}
		return desired
	}
	waits, served := at(), at(netip.MustParseAddr("203.0.113.1"))
	answer := holds(waits, 7, kept)
	cache := NewDesiredCache()
	changed := slices.Values([]membership.Member{{Key: source.KeyOf(r), Object: r, Role: membership.Selected}})
	for step, desired := range []*source.Zone{waits, served, waits} {
		j := Evaluate(cache.Update(z, desired, nil, changed), servers(), []observe.Observation{answer, answer}, asked, History{})
		zone, record := j.ZoneStatus(nil).Status, j.RecordStatus(r).Status
		if !record.InSync || zone.InSync != (desired == served) {
			t.Errorf("%d: the record is %s, the zone %s", step, record.Phase, zone.Phase)
		}
		says := strings.Contains(meta.FindStatusCondition(zone.Conditions, syncv1.ConditionPropagated).Message, "Service dns/primary-0 has no address yet")
		if says != (desired == waits) {
			t.Errorf("%d: %+v", step, zone.Conditions)
		}
		if row := j.ZoneStatus(nil).Servers[0].Records; row.Undeclared != 0 || row.OutOfSync != map[bool]int32{true: 2}[desired == waits] {
			t.Errorf("%d: %+v", step, row)
		}
	}
}
