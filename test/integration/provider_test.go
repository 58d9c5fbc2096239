package integration

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// A zone is on a cluster and on servers outside of Kubernetes: the same on all, in sync only when it is on all. What is changed by
// hand there comes back; a key that the server does not know is reported with what to do, and hinders nobody.
func TestProvider(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "provider.example", 1, 0)
	host := f.hostAddress()
	zones := []namedtest.Zone{{Name: "provider.example.", Records: "legacy 300 A 192.0.2.77\n"}, {Name: "ending.example."}}
	primaryAddr, secondaryAddr := freePort(t, host), freePort(t, host)
	primary := namedtest.Start(t, namedtest.Options{Addr: primaryAddr, Zones: zones, AlsoNotify: []netip.AddrPort{secondaryAddr}})
	secondary := namedtest.Start(t, namedtest.Options{Role: namedtest.Secondary, Addr: secondaryAddr, Primary: primary, Zones: zones})
	f.create(f.keySecret("corp-update", primary.Update), f.keySecret("corp-transfer", primary.Transfer))
	provider := f.outsidePrimary("corp", primary.Addr)
	provider.Spec.RFC2136.Secondaries = []v1beta1.ProviderServer{serverAt(secondary.Addr)}
	f.create(provider, f.aRecord("www", "www", "192.0.2.10"))
	zone := f.dnsZone("main", f.zone)
	change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}} })
	f.waitOutside("www.provider.example.", []string{"192.0.2.10"}, primary.Addr, secondary.Addr)
	f.waitServed("www.provider.example.", "A", "192.0.2.10")
	f.waitServed("legacy.provider.example.", "A", "192.0.2.77")

	f.runSub("status", func(f *fixture) {
		f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)
		if c := provider.Status.Capabilities; c == nil || !c.Serial || !c.Transfer || !ptr.Deref(c.Atomic, false) || provider.Status.ZonesCount != 1 || len(provider.Status.Servers) != 2 {
			f.Errorf("status %+v", provider.Status)
		}
	})
	f.runSub("rows", func(f *fixture) {
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			for _, object := range []string{"dnszone.main", "arecord.www"} {
				v, err := f.status(ctx, object)
				if err != nil {
					return err
				}
				rows := slices.DeleteFunc(slices.Clone(v.Servers), func(r syncv1.ServerStatus) bool {
					return r.Provider != "corp" || r.State != syncv1.StateInSync || r.Pod != ""
				})
				if !v.Status.InSync || len(v.Servers) != 3 || len(rows) != 2 {
					return fmt.Errorf("%s: %s, rows %+v", object, v.Status.Phase, v.Servers)
				}
			}
			return nil
		})
		plugin := &pluginTest{f, pluginFolder(f.T)}
		if tree, problem, _ := plugin.runPlugin("tree", "dnszone/main"); !strings.Contains(tree, "DNSProvider/corp/"+primary.Addr.String()) {
			f.Errorf("the tree has no line of the provider:\n%s%s", tree, problem)
		}
	})
	f.runSub("changed by hand", func(f *fixture) {
		f.updateOutside(primary, func(m *dns.Msg) {
			m.RemoveRRset([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "www.provider.example.", Rrtype: dns.TypeA, Class: dns.ClassINET}}})
		})
		if v, err := f.status(f.Context(), "arecord.www"); err != nil || v.Status.InSync && f.isOutside(primary.Addr, "www.provider.example.", "192.0.2.10") != nil {
			f.Errorf("in sync, although %s has lost it: %v", primary.Addr, err)
		}
		f.waitOutside("www.provider.example.", []string{"192.0.2.10"}, primary.Addr, secondary.Addr)
	})
	f.runSub("wrong key", func(f *fixture) {
		stranger := namedtest.NewKey(primary.Update.Name)
		change(f, f.keySecret("corp-update", stranger), func(s *corev1.Secret) { s.StringData = keyData(stranger) })
		f.waitProvider(provider, status.Authenticated, metav1.ConditionFalse, status.AuthenticationFailed)
		change(f, f.aRecord("www", "www"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{"192.0.2.11"} })
		f.waitServed("www.provider.example.", "A", "192.0.2.11")
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(zone.Status.Conditions, status.Ready)
			if ready == nil || ready.Reason != status.PrimaryFailed || !strings.Contains(ready.Message, "BADSIG") || !strings.Contains(ready.Message, "corp-update") {
				return fmt.Errorf("the zone says %+v", ready)
			}
			return nil
		})
		change(f, f.keySecret("corp-update", primary.Update), func(s *corev1.Secret) { s.StringData = keyData(primary.Update) })
		f.waitOutside("www.provider.example.", []string{"192.0.2.11"}, primary.Addr, secondary.Addr)
		f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)
	})
	f.runSub("frozen", func(f *fixture) {
		for _, c := range []struct {
			command, reason string
			ready           metav1.ConditionStatus
		}{{"freeze", status.UpdateRefused, metav1.ConditionFalse}, {"thaw", status.AllReady, metav1.ConditionTrue}} {
			if out, err := primary.Rndc(c.command, f.zone); err != nil {
				f.Fatal(out, err)
			}
			f.waitProvider(provider, status.Ready, c.ready, c.reason)
		}
	})
	f.runSub("no zone there", func(f *fixture) {
		other := f.dnsZone("other", "elsewhere.example")
		other.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}}
		f.create(other)
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil {
				return err
			}
			if len(other.Status.Providers) != 1 || other.Status.Providers[0].Status != v1beta1.ZoneFailed || !strings.Contains(other.Status.Providers[0].Message, "create the zone there") {
				return fmt.Errorf("the zone says %+v", other.Status.Providers)
			}
			return nil
		})
		f.waitServed("elsewhere.example.", "NS", "ns1.elsewhere.example.")
	})
	f.runSub("zone deleted", func(f *fixture) {
		f.deleteAnyway(zone)
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("it is still there: %w", err)
			}
			return nil
		})
		if err := f.isOutside(primary.Addr, "www.provider.example.", "192.0.2.11"); err != nil {
			f.Errorf("what is there does not stay as it is: %v", err)
		}
	})
	f.runSub("namespace deleted", func(f *fixture) { f.testNamespaceDeleted(primary) })
}

// testNamespaceDeleted: a zone on a server outside stays there as it is when its namespace is deleted, and its records before it.
func (f *fixture) testNamespaceDeleted(outside *namedtest.Server) {
	f = &fixture{T: f.T, client: f.client, namespace: kube.Namespace(f.T, "it"), zone: "ending.example", object: "main"}
	zone := f.dnsZone("main", f.zone)
	zone.Spec.ClusterRef, zone.Spec.ProviderRefs = "", []v1beta1.ProviderReference{{Name: "corp"}}
	f.create(f.keySecret("corp-update", outside.Update), f.keySecret("corp-transfer", outside.Transfer), f.outsidePrimary("corp", outside.Addr), zone)
	var records []client.Object
	for n := range 20 {
		records = append(records, f.aRecord(fmt.Sprintf("r%d", n), fmt.Sprintf("r%d", n), "192.0.2.10"))
	}
	f.create(records...)
	isWhole := func() {
		f.Helper()
		for _, r := range records {
			f.waitOutside(r.GetName()+".ending.example.", []string{"192.0.2.10"}, outside.Addr)
		}
	}
	isWhole()
	was, err := queryRdata(outside.Addr.String(), "ending.example.", dns.TypeSOA)
	if err != nil {
		f.Fatal(err)
	}
	f.deleteNamespace(records...)
	isWhole()
	if is, err := queryRdata(outside.Addr.String(), "ending.example.", dns.TypeSOA); err != nil || !slices.Equal(is, was) {
		f.Errorf("its SOA was %q and is %q, %v", was, is, err)
	}
}

// deleteNamespace deletes the fixture's namespace, and some objects before Kubernetes gets to it, and waits for its end.
func (f *fixture) deleteNamespace(first ...client.Object) {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	if err := f.client.Delete(f.Context(), namespace); err != nil {
		f.Fatal(err)
	}
	for _, o := range first {
		if err := f.client.Delete(f.Context(), o); client.IgnoreNotFound(err) != nil {
			f.Fatal(err)
		}
	}
	for _, o := range append(first, client.Object(namespace)) {
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%s is still there: %w; the namespace says %v", o.GetName(), err, namespace.Status.Conditions)
			}
			return nil
		})
	}
}

// hostAddress returns the address under which pods reach programs beside the Kubernetes cluster.
func (f *fixture) hostAddress() netip.Addr {
	f.Helper()
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, server := range servers {
		conn, err := net.Dial("udp", server)
		if err != nil {
			f.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return netip.MustParseAddrPort(conn.LocalAddr().String()).Addr()
	}
	f.Fatal("no server")
	return netip.Addr{}
}

// freePort returns a port of an address that nobody uses at the moment.
func freePort(t *testing.T, address netip.Addr) netip.AddrPort {
	t.Helper()
	addr, err := namedtest.FreeAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func serverAt(addr netip.AddrPort) v1beta1.ProviderServer {
	return v1beta1.ProviderServer{Address: addr.Addr().String(), Port: int32(addr.Port())}
}

// outsidePrimary returns a provider with a primary, and keys in the Secrets corp-update and corp-transfer.
func (f *fixture) outsidePrimary(name string, addr netip.AddrPort) *v1beta1.DNSProvider {
	provider := &v1beta1.DNSProvider{ObjectMeta: f.meta(name, nil)}
	provider.Spec.RFC2136 = &v1beta1.RFC2136Provider{
		Primaries:   []v1beta1.ProviderServer{serverAt(addr)},
		UpdateKey:   v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: "corp-update"}},
		TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: "corp-transfer"}},
	}
	return provider
}

func keyData(key wire.Key) map[string]string {
	return map[string]string{"name": key.Name, "algorithm": strings.TrimSuffix(key.Algorithm, "."), "secret": key.Secret}
}

func (f *fixture) keySecret(name string, key wire.Key) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: f.meta(name, nil), StringData: keyData(key)}
}

// isOutside returns an error unless a server answers with exactly these addresses at a name.
func (f *fixture) isOutside(server netip.AddrPort, name string, want ...string) error {
	got, err := queryRdata(server.String(), name, dns.TypeA)
	if err != nil || !slices.Equal(got, want) {
		return fmt.Errorf("%s answers %q for %s, %w, want %q", server, got, name, err, want)
	}
	return nil
}

func (f *fixture) waitOutside(name string, want []string, servers ...netip.AddrPort) {
	f.Helper()
	for _, server := range servers {
		kube.Eventually(f, kube.Settle, func(context.Context) error { return f.isOutside(server, name, want...) })
	}
}

// updateOutside changes the zone on a server by hand.
func (f *fixture) updateOutside(server *namedtest.Server, edit func(*dns.Msg)) {
	f.Helper()
	m := new(dns.Msg)
	m.SetUpdate(dns.Fqdn(f.zone))
	edit(m)
	conn, err := wire.Dial(f.Context(), server.Addr, &server.Update)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if reply, err := conn.Exchange(f.Context(), m); err != nil || reply.Rcode != dns.RcodeSuccess {
		f.Fatal(reply, err)
	}
}

// waitProvider waits until a provider has a condition.
func (f *fixture) waitProvider(p *v1beta1.DNSProvider, condition string, is metav1.ConditionStatus, reason string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, condition); c == nil || c.Status != is || c.Reason != reason {
			return fmt.Errorf("conditions %+v", p.Status.Conditions)
		}
		return nil
	})
}

// A server that others write to all the time, and that lets nobody transfer, has what objects declare and keeps the rest: its apex, its
// serial, and what others put there.
func TestProviderShared(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "shared.example", 1, 0)
	zones := []namedtest.Zone{{Name: "shared.example.", Records: "legacy 300 A 192.0.2.77\n"}}
	outside := namedtest.Start(t, namedtest.Options{Addr: freePort(t, f.hostAddress()), Zones: zones})
	provider := f.outsidePrimary("corp", outside.Addr)
	provider.Spec.RFC2136.TransferKey = nil // The update key may not transfer.
	provider.Spec.RFC2136.Writers, provider.Spec.RFC2136.ReadBy = v1beta1.WritersShared, v1beta1.ReadByQuery
	f.create(f.keySecret("corp-update", outside.Update), provider, f.aRecord("www", "www", "192.0.2.10"))
	change(f, f.dnsZone("main", f.zone), func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}} })
	soa := func() []string {
		got, err := queryRdata(outside.Addr.String(), "shared.example.", dns.TypeSOA)
		if err != nil || len(got) != 1 {
			f.Fatal(got, err)
		}
		return strings.Fields(got[0])
	}
	was, lease := soa(), 0
	others := func() {
		lease++
		f.updateOutside(outside, func(m *dns.Msg) {
			m.Insert([]dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: fmt.Sprintf("lease%d.shared.example.", lease), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(198, 51, 100, 1),
			}})
		})
	}
	for n := range 5 {
		address := fmt.Sprintf("192.0.2.%d", 20+n)
		change(f, f.aRecord("www", "www"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{address} })
		kube.Eventually(f, kube.Settle, func(context.Context) error {
			others()
			return f.isOutside(outside.Addr, "www.shared.example.", address)
		})
		f.waitServed("www.shared.example.", "A", address)
	}
	for n := range lease {
		f.waitOutside(fmt.Sprintf("lease%d.shared.example.", n+1), []string{"198.51.100.1"}, outside.Addr)
	}
	f.waitOutside("legacy.shared.example.", []string{"192.0.2.77"}, outside.Addr)
	if is := soa(); !slices.Equal(slices.Delete(is, 2, 3), slices.Delete(was, 2, 3)) { // But for the serial.
		f.Errorf("its SOA was %q and is %q", was, is)
	}
	f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		v, err := f.status(ctx, "arecord.www")
		if err != nil {
			return err
		}
		if !v.Status.InSync || len(v.Servers) != 2 {
			return fmt.Errorf("%s, rows %+v", v.Status.Phase, v.Servers)
		}
		return nil
	})
	f.updateOutside(outside, func(m *dns.Msg) {
		m.RemoveRRset([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "www.shared.example.", Rrtype: dns.TypeA, Class: dns.ClassINET}}})
	})
	f.waitOutside("www.shared.example.", []string{"192.0.2.24"}, outside.Addr)
}
