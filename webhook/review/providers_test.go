package review

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/status"
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
