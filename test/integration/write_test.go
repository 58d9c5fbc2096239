package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// What happens to one record in its life, each step seen in the answers of every server.
func TestWriteRecordLife(t *testing.T) {
	f := newFixture(t, "life.example", 1, 1)
	record := f.a("www", "www", "192.0.2.1")

	f.create(record)
	f.served("www.life.example", "A", "192.0.2.1")
	f.told(record, v1beta1.RecordStatus{Zone: "life.example", PublishedName: "www.life.example", Addresses: "192.0.2.1"})

	change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.3", "192.0.2.2"} })
	f.served("www.life.example", "A", "192.0.2.2", "192.0.2.3")

	change(f, record, func(r *v1beta1.ARecord) { r.Spec.Name = "Web.Eu" })
	f.served("web.eu.life.example", "A", "192.0.2.2", "192.0.2.3")
	f.served("www.life.example", "A")
	f.told(record, v1beta1.RecordStatus{Zone: "life.example", PublishedName: "web.eu.life.example", Addresses: "192.0.2.2,192.0.2.3"})

	change(f, record, func(r *v1beta1.ARecord) { r.Labels = map[string]string{"zone": "none"} })
	f.served("web.eu.life.example", "A")
	f.released(record)

	change(f, record, func(r *v1beta1.ARecord) { r.Labels = map[string]string{"zone": "main"} })
	f.served("web.eu.life.example", "A", "192.0.2.2", "192.0.2.3")

	if err := f.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	f.served("web.eu.life.example", "A")
	f.gone(record)
}

// All eight kinds reach every server, at the apex, below a wildcard and under names with underscores.
func TestWriteEveryKind(t *testing.T) {
	f := newFixture(t, "kinds.example", 1, 1)
	label := map[string]string{"zone": "main"}
	common := func(name string) v1beta1.RecordCommon { return v1beta1.RecordCommon{Name: name} }
	f.create(
		f.a("a", "*", "192.0.2.7"),
		&v1beta1.AAAARecord{ObjectMeta: f.meta("aaaa", label), Spec: v1beta1.AAAARecordSpec{RecordCommon: common("@"), IPv6Addresses: []string{"2001:DB8:0::1"}}},
		&v1beta1.CNAMERecord{ObjectMeta: f.meta("cname", label), Spec: v1beta1.CNAMERecordSpec{RecordCommon: common("alias"), Target: "Host.Example.NET."}},
		&v1beta1.NSRecord{ObjectMeta: f.meta("ns", label), Spec: v1beta1.NSRecordSpec{RecordCommon: common("sub"), Nameserver: "ns.example.net."}},
		&v1beta1.TXTRecord{ObjectMeta: f.meta("txt", label), Spec: v1beta1.TXTRecordSpec{RecordCommon: common("_dmarc"), Text: []string{`v=DMARC1; "p"=none`}}},
		&v1beta1.MXRecord{ObjectMeta: f.meta("mx", label), Spec: v1beta1.MXRecordSpec{RecordCommon: common("@"), Priority: 10, MailServer: "mail.example.net."}},
		&v1beta1.SRVRecord{ObjectMeta: f.meta("srv", label), Spec: v1beta1.SRVRecordSpec{RecordCommon: common("_sip._tcp"), Priority: 1, Weight: 2, Port: 5060, Target: "sip.example.net."}},
		&v1beta1.CAARecord{ObjectMeta: f.meta("caa", label), Spec: v1beta1.CAARecordSpec{RecordCommon: common("@"), Flags: 0, Tag: "issue", Value: "ca.example.net"}},
	)
	f.served("anything.kinds.example", "A", "192.0.2.7")
	f.served("kinds.example", "AAAA", "2001:db8::1")
	f.served("alias.kinds.example", "CNAME", "host.example.net.")
	f.served("sub.kinds.example", "NS", "ns.example.net.")
	f.served("_dmarc.kinds.example", "TXT", `"v=DMARC1; \"p\"=none"`)
	f.served("kinds.example", "MX", "10 mail.example.net.")
	f.served("_sip._tcp.kinds.example", "SRV", "1 2 5060 sip.example.net.")
	f.served("kinds.example", "CAA", `0 issue "ca.example.net"`)
}

// Several objects may declare values of one name; each owns its own. What somebody else put into the zone stays.
func TestWriteSharedAndForeignData(t *testing.T) {
	f := newFixture(t, "shared.example", 1, 1)
	one, two := f.a("one", "www", "192.0.2.1"), f.a("two", "www", "192.0.2.2", "192.0.2.1")
	f.create(one, two)
	f.served("www.shared.example", "A", "192.0.2.1", "192.0.2.2")

	f.nsupdate("shared.example.", rrset.New(rrset.Key{Name: "legacy.shared.example.", Type: dns.TypeA}, 300, "192.0.2.99"))
	f.served("legacy.shared.example", "A", "192.0.2.99")

	if err := f.client.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	f.served("www.shared.example", "A", "192.0.2.1")
	f.gone(two)
	f.served("legacy.shared.example", "A", "192.0.2.99")
}

// A changed selector lets records go, a deleted zone leaves its servers, and nothing of it is left on the records.
func TestWriteZoneLife(t *testing.T) {
	f := newFixture(t, "zonelife.example", 1, 1)
	record := f.a("www", "www", "192.0.2.1")
	f.create(record)
	f.served("www.zonelife.example", "A", "192.0.2.1")

	zone := &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}
	change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.RecordsFrom[0].Selector.MatchLabels["zone"] = "other" })
	f.served("www.zonelife.example", "A")
	f.released(record)
	change(f, zone, func(z *v1beta1.DNSZone) {
		z.Spec.RecordsFrom[0].Selector.MatchLabels["zone"] = "main"
		z.Spec.SOARecord.Refresh = 1234
	})
	f.served("www.zonelife.example", "A", "192.0.2.1")
	kube.Eventually(t, settle, func(context.Context) error {
		servers, err := f.servers(t.Context())
		if err != nil {
			return err
		}
		for pod, server := range servers {
			soa, err := ask(server, "zonelife.example.", dns.TypeSOA)
			if err != nil || len(soa) != 1 {
				return fmt.Errorf("%s: %v %w", pod, soa, err)
			}
			if got, err := rrset.ParseSOA(soa[0]); err != nil || got.Refresh != 1234 {
				return fmt.Errorf("%s still has the SOA %s", pod, soa[0])
			}
		}
		return nil
	})

	if err := f.client.Delete(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	f.gone(zone)
	f.released(record)
	kube.Eventually(t, settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			if _, err := ask(server, "zonelife.example.", dns.TypeSOA); err == nil || err.Error() != "answered REFUSED" {
				return fmt.Errorf("%s still serves the zone (%v)", pod, err)
			}
		}
		return nil
	})
}

// A primary that comes back with nothing has the complete zone, foreign data included, on the serial its secondaries
// know, before it answers anything.
func TestWritePrimaryComesBackEmpty(t *testing.T) {
	f := newFixture(t, "replay.example", 1, 1)
	f.create(f.a("www", "www", "192.0.2.1"))
	f.served("www.replay.example", "A", "192.0.2.1")
	f.nsupdate("replay.example.", rrset.New(rrset.Key{Name: "legacy.replay.example.", Type: dns.TypeA}, 300, "192.0.2.99"))
	f.served("legacy.replay.example", "A", "192.0.2.99")
	before := f.serial("dns-secondary-0-0", "replay.example.")

	old := &corev1.Pod{ObjectMeta: f.meta("dns-primary-0-0", nil)}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(t.Context(), old, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	kube.Eventually(t, 90*time.Second, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		server, ok := servers["dns-primary-0-0"]
		pod := &corev1.Pod{}
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(old), pod); err != nil || !ok || pod.UID == old.UID {
			return errors.New("the pod is not back yet")
		}
		got, err := ask(server, "www.replay.example.", dns.TypeA)
		if err != nil {
			return err // Refused or unreachable: resolvers turn to the other servers.
		}
		if len(got) != 1 {
			t.Fatalf("the primary answers %v from an empty zone", got)
		}
		return nil
	})
	t.Logf("the records were served again after %s", time.Since(began).Round(10*time.Millisecond))
	f.served("legacy.replay.example", "A", "192.0.2.99")
	if after := f.serial("dns-primary-0-0", "replay.example."); after != before {
		t.Errorf("the zone came back with serial %d, its secondaries know %d", after, before)
	}
}

// told waits until a record is ready and its status says what is expected.
func (f *fixture) told(record v1beta1.Record, want v1beta1.RecordStatus) {
	f.Helper()
	kube.Eventually(f, settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		got := record.GetRecordStatus()
		if !meta.IsStatusConditionTrue(got.Conditions, "Ready") || got.ObservedGeneration != record.GetGeneration() ||
			got.Zone != want.Zone || got.PublishedName != want.PublishedName || got.Addresses != want.Addresses {
			return fmt.Errorf("the status is %+v", got)
		}
		if zone := record.GetAnnotations()[v1beta1.ZoneAnnotation]; zone != want.Zone {
			return fmt.Errorf("the annotation says zone %q", zone)
		}
		return nil
	})
}

// released waits until nothing on a record says any more that it is in a zone.
func (f *fixture) released(record v1beta1.Record) {
	f.Helper()
	kube.Eventually(f, settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(record.GetRecordStatus().Conditions, "Ready")
		switch {
		case controllerutil.ContainsFinalizer(record, v1beta1.Finalizer):
			return errors.New("the finalizer is still there")
		case record.GetAnnotations()[v1beta1.ZoneAnnotation] != "":
			return errors.New("the zone annotation is still there")
		case record.GetRecordStatus().Zone != "" || record.GetRecordStatus().PublishedName != "":
			return fmt.Errorf("the status is %+v", record.GetRecordStatus())
		case ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != "NotSelected":
			return fmt.Errorf("condition Ready is %+v", ready)
		}
		return nil
	})
}

func (f *fixture) gone(o client.Object) {
	f.Helper()
	kube.Eventually(f, settle, func(ctx context.Context) error {
		err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("%s is still there with finalizers %v", o.GetName(), o.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}

// nsupdate adds an RRset to the zone on the primary behind the controller's back, as an administrator would.
func (f *fixture) nsupdate(zone string, set rrset.RRset) {
	f.Helper()
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	target := rfc2136.Target{Server: netip.MustParseAddrPort(servers["dns-primary-0-0"]), Zone: zone, Key: f.key(named.KeyUpdate)}
	provider := rfc2136.New(rfc2136.Options{})
	defer provider.Close()
	kube.Eventually(f, settle, func(ctx context.Context) error {
		reply, err := wire.Query(ctx, target.Server, zone, dns.TypeSOA)
		if err != nil {
			return err
		}
		have := wire.FromSOA(reply.Msg.Answer[0].(*dns.SOA))
		want := have
		want.Serial = rrset.NextSerial(have.Serial, uint32(time.Now().Unix()))
		_, err = provider.Apply(ctx, target, plan.Changes{Create: []rrset.RRset{set}}, have, want)
		return err
	})
}

// serial is that of the zone on one pod.
func (f *fixture) serial(pod, zone string) uint32 {
	f.Helper()
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	soa, err := ask(servers[pod], zone, dns.TypeSOA)
	if err != nil || len(soa) != 1 {
		f.Fatalf("the SOA of %s on %s: %v %v", zone, pod, soa, err)
	}
	parsed, err := rrset.ParseSOA(soa[0])
	if err != nil {
		f.Fatal(err)
	}
	return parsed.Serial
}
