package secondary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// followedBy returns a provider whose secondaries transfer zones of the namespace.
func followedBy(namespace, name string, addresses ...string) *v1beta1.DNSProvider {
	p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	p.Spec.Secondaries = &v1beta1.SecondariesProvider{TransferKey: &v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name + "-transfer"}}}
	for _, a := range addresses {
		p.Spec.Secondaries.Servers = append(p.Spec.Secondaries.Servers, v1beta1.ProviderServer{Address: a, Port: 53})
	}
	return p
}

// byAddress takes the key from a provider.
func byAddress(p *v1beta1.DNSProvider) *v1beta1.DNSProvider {
	p.Spec.Secondaries.TransferKey = nil
	return p
}

// Guests are the secondaries of the zone's providers, under their names.
func TestGuests(t *testing.T) {
	tooLong := followedBy("dns", strings.Repeat("x", 64), "192.0.2.3")
	gone := followedBy("dns", "gone", "192.0.2.4")
	gone.UID = ""
	unknown := followedBy("dns", "unknown", "ns.example.net") // a host name without an address
	for name, c := range map[string]struct {
		providers        []*v1beta1.DNSProvider
		notified, opened []string
	}{
		"nobody": {nil, []string{}, []string{}},
		"two": {
			[]*v1beta1.DNSProvider{followedBy("dns", "isp", "192.0.2.1", "2001:db8::1"), followedBy("dns", "b.c", "192.0.2.2")},
			[]string{"192.0.2.1:53 key isp.dns.secondary.lockstep.", "[2001:db8::1]:53 key isp.dns.secondary.lockstep.", "192.0.2.2:53 key b.c.dns.secondary.lockstep."},
			[]string{"key isp.dns.secondary.lockstep.", "key b.c.dns.secondary.lockstep."},
		},
		"by address, whatever the provider is called": {
			[]*v1beta1.DNSProvider{byAddress(followedBy("dns", strings.Repeat("y", 64), "192.0.2.1", "2001:db8::1", "ns.example.net")), followedBy("dns", "isp", "192.0.2.2")},
			[]string{"192.0.2.1:53 unsigned", "[2001:db8::1]:53 unsigned", "192.0.2.2:53 key isp.dns.secondary.lockstep."},
			[]string{"192.0.2.1", "2001:db8::1", "key isp.dns.secondary.lockstep."},
		},
		"not those without a name or an object": {[]*v1beta1.DNSProvider{tooLong, gone}, []string{}, []string{}},
		"without an address":                    {[]*v1beta1.DNSProvider{unknown}, []string{}, []string{"key unknown.dns.secondary.lockstep."}},
	} {
		notified, opened := Guests(c.providers)
		if diff := cmp.Diff([][]string{c.notified, c.opened}, [][]string{notified, opened}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
