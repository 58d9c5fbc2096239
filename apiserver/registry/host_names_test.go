package registry

import (
	"fmt"
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// The row of a server that a provider has by host name is about the address that the name has now.
func TestRowFollowsAHostName(t *testing.T) {
	w := newWorld(t)
	port := bind.Reserve(t).Port()
	at := map[*bind.Server]netip.Addr{}
	start := func(ip, records string) *bind.Server {
		s := bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{{Name: "example.test.", Records: records}}})
		at[s] = netip.MustParseAddr(ip)
		bind.StartProxyAt(t, netip.AddrPortFrom(at[s], port), s.Addr)
		return s
	}
	former, next := start("127.0.0.2", "www 300 A 192.0.2.10\n"), start("127.0.0.3", "")
	provider := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "corp", UID: "corp"}}
	provider.Spec.RFC2136 = &v1beta1.RFC2136Provider{
		Primaries: []v1beta1.ProviderServer{{Address: "corp.example.net", Port: int32(port)}},
		UpdateKey: v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: "corp"}},
	}
	setAddress := func(s *bind.Server) {
		provider = provider.DeepCopy()
		provider.Status.Servers = []v1beta1.ProviderServerStatus{{Address: fmt.Sprintf("corp.example.net:%d", port), IP: at[s].String(), Role: "Primary"}}
		w.Apply(provider)
	}
	setAddress(former)
	z := fakekube.Zone("example.test")
	z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}}
	z.Status.Providers = []v1beta1.ZoneProvider{{Name: "corp", Status: v1beta1.ZoneConfigured}}
	w.Apply(z)
	r := w.Record(z, "www", "192.0.2.10")
	w.SetProgrammed(z, r)
	w.Apply(r)
	w.Eventually("the caches have the record", func() bool {
		return w.verdicts.informers.Exists(keyOf("arecord.www")) && len(w.verdicts.index.ZoneNames(keyOf("arecord.www"))) > 0
	})
	is := func(state syncv1.ServerState) func() bool {
		return func() bool {
			s := w.get("arecord.www")
			return len(s.Servers) == 1 && rowOf(s).Provider == "corp" && rowOf(s).State == state && s.Status.InSync == (state == syncv1.StateInSync)
		}
	}
	w.Eventually("the server that the name has is in sync", is(syncv1.StateInSync))
	setAddress(next)
	w.Eventually("the next server lacks the record", is(syncv1.StateMissing))
	former.Stop()
	fakekube.Update(t, next, "example.test.", "www.example.test.", "192.0.2.10")
	w.Eventually("the next server is in sync, whatever the former one does", is(syncv1.StateInSync))
}
