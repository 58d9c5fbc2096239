package reconcile

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// aliasOrAddress has objects by kind: each declares an alias or an address of a name.
var aliasOrAddress = map[string]func(meta metav1.ObjectMeta, owner string, alias bool) source.Object{
	"record": func(meta metav1.ObjectMeta, owner string, alias bool) source.Object {
		if alias {
			return &v1beta1.CNAMERecord{ObjectMeta: meta, Spec: v1beta1.CNAMERecordSpec{RecordCommon: v1beta1.RecordCommon{Name: owner}, Target: "cdn.example.net."}}
		}
		return &v1beta1.ARecord{ObjectMeta: meta, Spec: v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: owner}, IPv4Addresses: []string{"192.0.2.10"}}}
	},
	"DNSRecord": func(meta metav1.ObjectMeta, owner string, alias bool) source.Object {
		spec := v1beta1.DNSRecordSpec{RecordCommon: v1beta1.RecordCommon{Name: owner}, Type: "A", Data: []string{"192.0.2.10"}}
		if alias {
			spec.Type, spec.Data = "CNAME", []string{"cdn.example.net."}
		}
		return &v1beta1.DNSRecord{ObjectMeta: meta, Spec: spec}
	},
	"DNSEndpoint": func(meta metav1.ObjectMeta, owner string, alias bool) source.Object {
		endpoint := &v1alpha1.Endpoint{DNSName: owner + "." + rigZone, RecordType: "A", Targets: []string{"192.0.2.10"}}
		if alias {
			endpoint.RecordType, endpoint.Targets = "CNAME", []string{"cdn.example.net"}
		}
		return &v1alpha1.DNSEndpoint{ObjectMeta: meta, Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{endpoint}}}
	},
}

// swapped is such an object as admission leaves it, created at a second.
func swapped(kind, name string, second int64, owner string, alias bool) source.Object {
	return aliasOrAddress[kind](metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.Unix(second, 0), Finalizers: []string{v1beta1.Finalizer},
		Labels: map[string]string{"in": "yes"}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"},
	}, owner, alias)
}

// leaving is an object that is being deleted.
func leaving(o source.Object) source.Object {
	o.SetDeletionTimestamp(new(metav1.Now()))
	o.SetGeneration(2)
	return o
}

// countUpdates leads all that the rig sends to its first primary through a proxy, and returns how many UPDATEs were answered.
func (r *rig) countUpdates() *atomic.Int32 {
	proxy, count := bind.StartProxy(r.t, r.primary[0].Addr), &atomic.Int32{}
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		if m := new(dns.Msg); m.Unpack(reply) == nil && m.Opcode == dns.OpcodeUpdate {
			count.Add(1)
		}
		return reply, nil
	})
	r.scope.servers[0].Addr = proxy.Addr
	return count
}

// askAlways asks a primary for the address of a name until it is stopped, and returns how often, and how often nothing was there.
func askAlways(t *testing.T, s *bind.Server, name string) (stop func() (asked, empty int)) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked, empty int
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if reply, err := wire.Query(ctx, s.Addr, name+"."+rigZone, dns.TypeA, wire.WithTimeout(30*time.Second)); err == nil {
				if asked++; len(reply.Msg.Answer) == 0 {
					empty++
				}
			}
		}
	})
	return func() (int, int) {
		cancel()
		done.Wait()
		return asked, empty
	}
}

// Whoever replaces an alias by an address, or the reverse, finds one of them at every moment: the new object waits for the old one, and
// one UPDATE changes the name.
func TestAliasBecomesAddressInOneUpdate(t *testing.T) {
	for _, alias := range []bool{true, false} {
		for _, kinds := range [][2]string{{"record", "record"}, {"DNSRecord", "DNSEndpoint"}, {"DNSEndpoint", "record"}} {
			for _, order := range []string{"the new object first", "both at once", "the old object renamed"} {
				t.Run(fmt.Sprintf("%v, from an alias: %t, %s", kinds, alias, order), func(t *testing.T) {
					r := newRig(t, 1, bind.Zone{})
					old, next := swapped(kinds[0], "z-old", 1, "www", alias), swapped(kinds[1], "a-new", 2, "www", !alias)
					r.zones.Set(old)
					r.settle()
					updates, stop := r.countUpdates(), askAlways(t, r.primary[0], "www")
					released := 1
					switch order {
					case "the new object first":
						r.zones.Set(next)
						r.pass()
						if n := updates.Load(); n != 0 {
							t.Errorf("%d UPDATEs for what waits", n)
						}
						for _, d := range r.states.stateOf(r.zone).content.Desired().Of(source.KeyOf(next)) {
							if d.Reason != status.Conflict || !d.Waits {
								t.Errorf("the new object: %+v", d)
							}
						}
						r.zones.Set(leaving(old))
					case "both at once":
						r.zones.Set(leaving(old))
						r.zones.Set(next)
					default:
						renamed := swapped(kinds[0], "z-old", 1, "former", alias)
						renamed.SetGeneration(2)
						r.zones.Set(renamed)
						r.zones.Set(next)
						released = 0
					}
					p := r.pass()
					gone := append(p.event.Released, r.settle()...) // Secondaries follow first.
					if asked, empty := stop(); empty > 0 || asked == 0 {
						t.Errorf("%d of %d answers were empty", empty, asked)
					}
					if n := updates.Load(); n != 1 || len(p.event.Unprogrammed) > 0 || len(gone) != released {
						t.Errorf("%d UPDATEs; not served: %v, released: %v", n, p.event.Unprogrammed, gone)
					}
					reply, err := wire.Query(t.Context(), r.primary[0].Addr, "www."+rigZone, dns.TypeA)
					want := dns.TypeCNAME
					if alias {
						want = dns.TypeA
					}
					if err != nil || len(reply.Msg.Answer) != 1 || reply.Msg.Answer[0].Header().Rrtype != want {
						t.Errorf("%v, %v", reply.Msg, err)
					}
				})
			}
		}
	}
}
