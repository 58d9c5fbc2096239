package integration

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/nsd"
)

// outsideTest is a zone on a cluster that a BIND and an NSD outside transfer with a key of a provider.
type outsideTest struct {
	*fixture
	primary netip.AddrPort
	key     wire.Key
	bind    *namedtest.Server
	nsd     *nsd.Server
	// readBy is how their rows say that they are read.
	readBy string
}

// Servers outside transfer a zone from the cluster's primary with the provider's key, are notified and asked, and have rows; the key
// opens no other zone; what goes wrong at one is reported; a provider that the zone does not name any more gets nothing.
func TestProviderSecondaries(t *testing.T) {
	kube.Isolated(t)
	f := &outsideTest{fixture: newFixture(t, "followed.example", 1, 0)}
	host, zone := f.hostAddress(), f.dnsZone("main", f.zone)
	f.primary = f.serviceOf("dns-primary-0")
	f.key = namedtest.NewKey("outside." + f.namespace + ".secondary.lockstep.")
	f.bind = namedtest.Start(t, namedtest.Options{
		Role: namedtest.Secondary, Addr: freePort(t, host), Zones: []namedtest.Zone{{Name: "followed.example."}}, NoWait: true,
		Primary: &namedtest.Server{Addr: f.primary, Transfer: f.key},
	})
	f.nsd = nsd.Start(t, nsd.Options{Addr: freePort(t, host), Zone: "followed.example.", Primary: f.primary, Key: f.key})
	misnamed := f.key
	misnamed.Name = "isp."
	f.create(f.aRecord("www", "www", "192.0.2.10"), f.keySecret("outside", misnamed))
	f.newZone(t, "closed.example")
	if err := f.transfer("followed.example."); err == nil {
		t.Error("anybody may transfer the zone")
	}
	provider := &v1beta1.DNSProvider{ObjectMeta: f.meta("outside", nil)}
	provider.Spec.Secondaries = &v1beta1.SecondariesProvider{
		Servers:     []v1beta1.ProviderServer{serverAt(f.bind.Addr), serverAt(f.nsd.Addr)},
		TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: "outside"}},
	}
	f.create(provider)
	change(f.fixture, zone, func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "outside"}} })
	f.waitProvider(provider, status.Ready, metav1.ConditionFalse, status.KeyUnusable)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { // once the right to read the Secret is there
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(provider), provider); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(provider.Status.Conditions, status.Ready); !strings.Contains(ready.Message, "its name has to be "+f.key.Name) {
			return fmt.Errorf("the provider does not say how to name the key: %+v", ready)
		}
		return nil
	})
	f.setKey(f.key)
	f.waitOutside("www.followed.example.", []string{"192.0.2.10"}, f.bind.Addr, f.nsd.Addr)
	f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
	f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)
	if err := f.transfer("closed.example."); err == nil {
		t.Error("the key opens another zone of the same server")
	}

	f.run("changed", func(f *outsideTest) {
		f.setWWW("192.0.2.11")
		f.waitOutside("www.followed.example.", []string{"192.0.2.11"}, f.bind.Addr, f.nsd.Addr)
		f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
	})
	f.run("stopped", func(f *outsideTest) {
		f.nsd.Stop()
		f.waitRows(syncv1.StateInSync, syncv1.StateUnreachable)
		f.setWWW("192.0.2.12")
		f.waitRows(syncv1.StateInSync, syncv1.StateUnreachable)
		f.nsd.Restart(f.key)
		f.waitOutside("www.followed.example.", []string{"192.0.2.12"}, f.bind.Addr, f.nsd.Addr)
		f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
	})
	f.run("stale", func(f *outsideTest) {
		elsewhere := "192.0.2.1 port 53"
		f.reconfigure(fmt.Sprintf("%s port %d", f.primary.Addr(), f.primary.Port()), elsewhere)
		f.setWWW("192.0.2.13")
		f.waitRows(syncv1.StateStale, syncv1.StateInSync)
		f.reconfigure(elsewhere, fmt.Sprintf("%s port %d", f.primary.Addr(), f.primary.Port()))
		f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
	})
	f.run("key rotated", func(f *outsideTest) {
		next := namedtest.NewKey(f.key.Name)
		f.setKey(next)
		f.waitProvider(provider, status.Authenticated, metav1.ConditionFalse, status.AuthenticationFailed)
		f.reconfigure(f.key.Secret, next.Secret)
		f.nsd.Restart(next)
		old := *f
		f.key = next
		f.setWWW("192.0.2.14")
		f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
		if err := old.transfer("followed.example."); err == nil {
			f.Error("the old key still transfers the zone")
		}
	})
	f.run("read by query", func(f *outsideTest) {
		f.reconfigure(fmt.Sprintf("allow-transfer { key %q; }", f.key.Name), "allow-transfer { none; }")
		f.setWWW("192.0.2.15")
		f.waitRows(syncv1.StateRefused, syncv1.StateInSync)
		change(f.fixture, provider, func(p *v1beta1.DNSProvider) { p.Spec.Secondaries.ReadBy = v1beta1.ReadByQuery })
		f.readBy = "Query"
		f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)
		f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
		elsewhere := "192.0.2.1 port 53"
		f.reconfigure(fmt.Sprintf("%s port %d", f.primary.Addr(), f.primary.Port()), elsewhere)
		f.setWWW("192.0.2.16")
		f.waitRows(syncv1.StateStale, syncv1.StateInSync)
		f.reconfigure(elsewhere, fmt.Sprintf("%s port %d", f.primary.Addr(), f.primary.Port()))
		f.waitOutside("www.followed.example.", []string{"192.0.2.16"}, f.bind.Addr, f.nsd.Addr)
		f.waitRows(syncv1.StateInSync, syncv1.StateInSync)
	})
	f.run("one too many", func(f *outsideTest) {
		all := []*v1beta1.DNSProvider{provider}
		for n := range membership.GuestsOfNamespace {
			name := fmt.Sprintf("more-%d", n)
			more := &v1beta1.DNSProvider{ObjectMeta: f.meta(name, nil), Spec: *provider.Spec.DeepCopy()}
			more.Spec.Secondaries.Servers = []v1beta1.ProviderServer{{Address: fmt.Sprintf("192.0.2.%d", n+1)}}
			more.Spec.Secondaries.TransferKey.SecretRef.Name = name
			f.create(f.keySecret(name, namedtest.NewKey(name+"."+f.namespace+".secondary.lockstep.")), more)
			all = append(all, more)
		}
		closed := &v1beta1.DNSZone{ObjectMeta: f.meta("closed", nil)}
		change(f.fixture, closed, func(z *v1beta1.DNSZone) {
			z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: all[len(all)-1].Name}}
		})
		change(f.fixture, zone, func(z *v1beta1.DNSZone) {
			for _, p := range all[1 : len(all)-1] {
				z.Spec.ProviderRefs = append(z.Spec.ProviderRefs, v1beta1.ProviderReference{Name: p.Name})
			}
		})
		admitted := membership.AdmitGuests(all)
		n := slices.IndexFunc(all, func(p *v1beta1.DNSProvider) bool { return !slices.Contains(admitted, p) })
		f.waitProvider(all[n], status.Ready, metav1.ConditionFalse, status.TooManyProviders)
		f.waitProvider(provider, status.Ready, metav1.ConditionTrue, status.AllReady)
		if err := f.transfer("followed.example."); err != nil {
			f.Errorf("the oldest has lost its place: %v", err)
		}
		if err := f.client.Delete(f.Context(), admitted[1]); err != nil {
			f.Fatal(err)
		}
		f.waitProvider(all[n], status.Ready, metav1.ConditionFalse, status.Unreachable)
	})
	f.run("removed", func(f *outsideTest) {
		change(f.fixture, zone, func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = nil })
		kube.Eventually(f, kube.Settle, func(context.Context) error {
			if f.transfer("followed.example.") == nil {
				return fmt.Errorf("the key still transfers the zone")
			}
			return nil
		})
		f.waitRows()
	})
}

func (f *outsideTest) run(name string, run func(*outsideTest)) {
	f.runSub(name, func(s *fixture) {
		all := *f
		all.fixture = s
		run(&all)
		f.key, f.readBy = all.key, all.readBy
	})
}

// serviceOf returns where the Service of an instance answers.
func (f *outsideTest) serviceOf(name string) netip.AddrPort {
	f.Helper()
	i := &v1beta1.Bind9Instance{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, i); err != nil {
		f.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(i.Status.ServiceAddress), serving.ServicePort)
}

func (f *outsideTest) transfer(zone string) error {
	_, err := wire.Transfer(f.Context(), f.primary, zone, nil, &f.key)
	return err
}

func (f *outsideTest) setKey(key wire.Key) {
	f.Helper()
	change(f.fixture, f.keySecret("outside", key), func(s *corev1.Secret) { s.StringData = keyData(key) })
}

func (f *outsideTest) setWWW(address string) {
	f.Helper()
	change(f.fixture, f.aRecord("www", "www"), func(a *v1beta1.ARecord) { a.Spec.IPv4Addresses = []string{address} })
	f.waitServed("www.followed.example.", dns.TypeToString[dns.TypeA], address)
}

// reconfigure replaces a text in the configuration of the BIND outside.
func (f *outsideTest) reconfigure(before, after string) {
	f.Helper()
	file := filepath.Join(f.bind.Dir, "named.conf")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), before, after)), 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
	if out, err := f.bind.Rndc("reconfig"); err != nil {
		f.Fatal(out, err)
	}
}

// waitRows waits until zone and record have rows of the servers outside in these states, first that of BIND.
func (f *outsideTest) waitRows(want ...syncv1.ServerState) {
	f.Helper()
	addresses := []string{f.bind.Addr.String(), f.nsd.Addr.String()}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		for _, object := range []string{"dnszone.main", "arecord.www"} {
			v, err := f.status(ctx, object)
			if err != nil {
				return err
			}
			var got []syncv1.ServerState
			for _, row := range v.Servers {
				if row.Provider == "outside" && row.Address == addresses[len(got)%2] && row.ReadBy == f.readBy {
					got = append(got, row.State)
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("%s: %s, rows %+v", object, v.Status.Phase, v.Servers)
			}
		}
		return nil
	})
}
