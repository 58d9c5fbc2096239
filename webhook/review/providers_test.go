package review

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

func TestProviderWarnings(t *testing.T) {
	provider := func(name string, servers ...string) *v1beta1.DNSProvider {
		p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, UID: "1", Generation: 2}}
		p.Spec.RFC2136 = &v1beta1.RFC2136Provider{}
		for _, s := range servers {
			p.Spec.RFC2136.Primaries = append(p.Spec.RFC2136.Primaries, v1beta1.ProviderServer{Address: s, Port: 53})
		}
		return p
	}
	ready := func(p *v1beta1.DNSProvider, is metav1.ConditionStatus, generation int64) *v1beta1.DNSProvider {
		p.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: is, Reason: status.KeyUnusable, ObservedGeneration: generation}}
		return p
	}
	elsewhere := provider("foreign", "192.0.2.1")
	elsewhere.Namespace = "other"
	unsupported := provider("asked", "192.0.2.1")
	unsupported.Spec.RFC2136 = nil
	for name, c := range map[string]struct {
		providers []*v1beta1.DNSProvider
		named     string
		want      []string
	}{
		"well":             {[]*v1beta1.DNSProvider{ready(provider("a", "192.0.2.1"), metav1.ConditionTrue, 2), provider("b", "192.0.2.2")}, "a b", nil},
		"missing":          {nil, "a", []string{"no DNSProvider a in namespace dns"}},
		"of another team":  {[]*v1beta1.DNSProvider{elsewhere}, "foreign", []string{"no DNSProvider foreign in namespace dns"}},
		"unsupported":      {[]*v1beta1.DNSProvider{unsupported}, "asked", []string{"DNSProvider asked is of a type"}},
		"without a key":    {[]*v1beta1.DNSProvider{ready(provider("a", "192.0.2.1"), metav1.ConditionFalse, 2)}, "a", []string{"a is not ready (KeyUnusable)"}},
		"changed since":    {[]*v1beta1.DNSProvider{ready(provider("a", "192.0.2.1"), metav1.ConditionFalse, 1)}, "a", nil},
		"one address":      {[]*v1beta1.DNSProvider{provider("a", "192.0.2.1"), provider("b", "192.0.2.2", "192.0.2.1")}, "a b", []string{"a and b both have the server 192.0.2.1:53"}},
		"one host name":    {[]*v1beta1.DNSProvider{provider("a", "ns.example.net"), provider("b", "ns.example.net")}, "b a", []string{"b and a both have the server ns.example.net:53"}},
		"not in this zone": {[]*v1beta1.DNSProvider{provider("a", "192.0.2.1"), provider("b", "192.0.2.1")}, "b", nil},
	} {
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main"}}
		for ref := range strings.FieldsSeq(c.named) {
			zone.Spec.ProviderRefs = append(zone.Spec.ProviderRefs, v1beta1.ProviderReference{Name: ref})
		}
		got := providerWarnings(zone, membership.NewFleet(membership.FleetObjects{DNSProviders: c.providers}, "home"))
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
		}
		for i, want := range c.want {
			if i < len(got) && !strings.Contains(got[i], want) {
				t.Errorf("%s: %q does not say %q", name, got[i], want)
			}
		}
	}
}

// What the controller would report of a provider without asking a server, admission says at once.
func TestProviderReviewer(t *testing.T) {
	server := func(addresses ...string) (all []v1beta1.ProviderServer) {
		for _, a := range addresses {
			all = append(all, v1beta1.ProviderServer{Address: a, Port: 53})
		}
		return all
	}
	secondaries := func(name string, age int, addresses ...string) *v1beta1.DNSProvider {
		p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}}
		if age >= 0 {
			p.UID, p.CreationTimestamp = types.UID(name), metav1.NewTime(time.Unix(int64(age), 0))
		}
		p.Spec.Secondaries = &v1beta1.SecondariesProvider{Servers: server(addresses...), TransferKey: &v1beta1.ProviderKey{}}
		return p
	}
	eight := make([]client.Object, membership.GuestsOfNamespace)
	for n := range eight {
		eight[n] = secondaries(fmt.Sprintf("old-%d", n), n, "192.0.2.9")
	}
	elsewhere := secondaries("elsewhere", 1, "192.0.2.9")
	elsewhere.Namespace = "other"
	rfc2136 := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "corp"}}
	rfc2136.Spec.RFC2136 = &v1beta1.RFC2136Provider{Primaries: server("192.0.2.1", "ns.example.net"), Secondaries: server("NS.example.net")}
	coreDNS := func(servers v1beta1.CoreDNSServers) *v1beta1.DNSProvider {
		p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "etcd"}}
		p.Spec.CoreDNS = &v1beta1.CoreDNSProvider{Servers: servers}
		return p
	}
	for name, c := range map[string]struct {
		stored   []client.Object
		provider *v1beta1.DNSProvider
		want     string // empty: no warning
	}{
		"well":                   {eight[1:], secondaries("isp", -1, "192.0.2.1"), ""},
		"one too many":           {eight, secondaries("isp", -1, "192.0.2.1"), "one of 9 DNSProviders"},
		"the oldest of too many": {append(eight[:8:8], secondaries("isp", 0, "192.0.2.1")), secondaries("old-0", 0, "192.0.2.1"), ""},
		"of another namespace":   {append(eight[1:8:8], elsewhere), secondaries("isp", -1, "192.0.2.1"), ""},
		"too long a name":        {nil, secondaries(strings.Repeat("x", 64), -1, "192.0.2.1"), "too long a name"},
		"one server twice":       {nil, rfc2136, "spec: the server ns.example.net:53 is there twice"},
		"no replica":             {nil, coreDNS(v1beta1.CoreDNSServers{}), "spec.coreDNS.servers: "},
		"a replica":              {nil, coreDNS(v1beta1.CoreDNSServers{Addresses: server("192.0.2.1")}), ""},
		"another namespace's":    {nil, coreDNS(v1beta1.CoreDNSServers{Service: &v1beta1.ServiceReference{Name: "a", Namespace: "other"}}), "may only name one of its own"},
	} {
		result, err := providerReviewer{newStaticObjects(c.stored...)}.review(t.Context(), c.provider, nil)
		if err != nil || len(result.Problems) > 0 || (c.want == "") != (len(result.Warnings) == 0) || !strings.Contains(strings.Join(result.Warnings, "; "), c.want) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}
