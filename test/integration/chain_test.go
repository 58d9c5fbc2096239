package integration

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestChain: a zone that delegates a signed one hears of its keys, and asks for nothing before resolvers can rely on them. Signing does not
// end while a DS record that somebody declares is there, and does once it is gone.
func TestChain(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "chain.test", 1, 1)
	ns := &v1beta1.NSRecord{ObjectMeta: f.meta("shop", f.labels())}
	ns.Spec.Name, ns.Spec.Nameserver = "shop", "ns1.shop.chain.test."
	f.create(ns)
	s := f.newZone(t, "shop.chain.test", func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = "default" })
	s.waitSigned()
	s.waitDelegated(status.DSPending)
	parent, err := f.readZone(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var d *v1beta1.SecureDelegation
	kube.Eventually(s, kube.Settle, func(ctx context.Context) error {
		zone, err := s.readZone(ctx)
		if err != nil {
			return err
		}
		if d = zone.Status.DNSSEC.Delegation; d == nil || len(d.Keys) != 1 || len(d.Parents) != 1 || d.Parents[0] != parent.UID {
			return fmt.Errorf("status.dnssec.delegation is %+v", d)
		}
		return nil
	})
	f.waitDS(0)

	ds := &v1beta1.DNSRecord{ObjectMeta: f.meta("ds", f.labels())}
	ds.Spec.Name, ds.Spec.Type, ds.Spec.Data, ds.Spec.TTL = "shop", "DS", []string{d.Keys[0].DS}, new(int64(5))
	f.create(ds)
	f.waitDS(1)
	s.waitDelegated(status.DSDeclared)
	s.setPolicy("insecure")
	s.waitDelegated(status.DSWithdrawing)
	if zone, err := s.readZone(t.Context()); err != nil || zone.Status.DNSSEC == nil || !zone.Status.DNSSEC.Signed {
		t.Fatalf("%+v, %v: it has to stay signed", zone.Status.DNSSEC, err)
	}
	if err := f.client.Delete(t.Context(), ds); err != nil {
		t.Fatal(err)
	}
	f.waitDS(0)
	kube.Eventually(s, kube.Start, func(ctx context.Context) error {
		zone, err := s.readZone(ctx)
		if err == nil && zone.Status.DNSSEC != nil {
			err = fmt.Errorf("status.dnssec is %+v", zone.Status.DNSSEC)
		}
		return err
	})
}

// waitDelegated waits until the zone's condition Delegated has a reason.
func (f *fixture) waitDelegated(reason string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		zone, err := f.readZone(ctx)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(zone.Status.Conditions, status.Delegated); c == nil || c.Reason != reason {
			return fmt.Errorf("the condition Delegated is %+v, want the reason %s", c, reason)
		}
		return nil
	})
}

// waitDS waits until all servers answer with so many DS records of the zone below.
func (f *fixture) waitDS(count int) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			reply, err := wire.Query(ctx, netip.MustParseAddrPort(server), "shop."+f.zone+".", dns.TypeDS)
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
			if n := len(reply.Msg.Answer); n != count {
				return fmt.Errorf("%s has %d DS records, not %d", pod, n, count)
			}
		}
		return nil
	})
}
