package registry

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A zone that its primary signs by itself is compared without what the signing adds, whichever way it is read.
func TestZoneSignedByItsPrimary(t *testing.T) {
	const records = "www 300 A 192.0.2.10\n"
	servers := map[string]func(t *testing.T, byQuery bool) (netip.AddrPort, wire.Key){
		"BIND": func(t *testing.T, byQuery bool) (netip.AddrPort, wire.Key) {
			zone := bind.Zone{Name: "example.test.", Records: records, Extra: "dnssec-policy default; inline-signing yes;"}
			if byQuery {
				zone.Extra += " allow-transfer { none; };"
			}
			s := bind.Start(t, bind.Options{Zones: []bind.Zone{zone}})
			return s.Addr, s.Transfer
		},
		"BIND without inline signing": func(t *testing.T, byQuery bool) (netip.AddrPort, wire.Key) {
			zone := bind.Zone{Name: "example.test.", Records: records, Extra: "dnssec-policy default; inline-signing no;"}
			if byQuery {
				zone.Extra += " allow-transfer { none; };"
			}
			s := bind.Start(t, bind.Options{Zones: []bind.Zone{zone}})
			return s.Addr, s.Transfer
		},
		"Knot": func(t *testing.T, byQuery bool) (netip.AddrPort, wire.Key) {
			options := []string{"dnssec-signing: on"}
			if byQuery {
				options = append(options, "acl: [update, query]")
			}
			s := knot.Start(t, map[string]string{"example.test.": records}, options...)
			return s.Addr, s.Transfer
		},
	}
	for name, start := range servers {
		for _, byQuery := range []bool{false, true} {
			way := map[bool]string{false: " by transfer", true: " by query"}[byQuery]
			t.Run(name+way, func(t *testing.T) {
				addr, key := start(t, byQuery)
				if _, err := wire.Transfer(t.Context(), addr, "example.test.", nil, &key); (err != nil) != byQuery {
					t.Fatalf("a transfer: %v", err)
				}
				w := newWorld(t)
				w.Key = key
				if byQuery {
					w.ServerByQuery("primary", v1beta1.RolePrimary, addr)
				} else {
					w.Server("primary", v1beta1.RolePrimary, addr)
				}
				z := fakekube.Zone("example.test", "primary")
				w.Apply(z)
				w.Apply(w.Record(z, "www", "192.0.2.10"))
				w.awaitRecords(slices.Values([]string{"www"}))
				w.Eventually("the zone is signed", func() bool { return isSigned(addr) })
				for _, object := range []string{"arecord.www", "dnszone.example.test"} {
					s := w.get(object)
					if c := rowOf(s).Records; !s.Status.InSync || c != nil && *c != (syncv1.RecordCounts{InSync: 3}) {
						t.Errorf("%s: %s, row %+v, counts %+v", object, states(s), rowOf(s), c)
					}
				}
				w.Apply(w.Record(z, "gone", "192.0.2.11"))
				w.awaitRecords(slices.Values([]string{"gone"}))
				if s := w.get("arecord.gone"); s.Status.InSync || rowOf(s).State != syncv1.StateMissing {
					t.Errorf("missing: %s, row %+v", states(s), rowOf(s))
				}
			})
		}
	}
}

func isSigned(server netip.AddrPort) bool {
	reply, err := wire.Query(context.Background(), server, "www.example.test.", dns.TypeRRSIG)
	return err == nil && len(reply.Msg.Answer) > 0
}
