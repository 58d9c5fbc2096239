package zone

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// followedBy returns a provider whose secondaries transfer zones of the namespace.
func followedBy(namespace, name string, addresses ...string) *v1beta1.DNSProvider {
	p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	p.Spec.Secondaries = &v1beta1.SecondariesProvider{TransferKey: v1beta1.ProviderKey{SecretRef: v1beta1.ProviderSecret{Name: name + "-transfer"}}}
	for _, a := range addresses {
		p.Spec.Secondaries.Servers = append(p.Spec.Secondaries.Servers, v1beta1.ProviderServer{Address: a, Port: 53})
	}
	return p
}

// primaryConfig is the sidecar of a primary.
type primaryConfig struct {
	sidecarClient
	zone    bindcar.Zone
	patches int
}

func (c *primaryConfig) Zone(context.Context, bindcar.Address, string) (bindcar.Zone, error) {
	return c.zone, nil
}

func (c *primaryConfig) PatchZone(_ context.Context, _ bindcar.Address, _ string, patch bindcar.PatchZone) error {
	c.zone.AlsoNotify, c.zone.AllowTransfer = *patch.AlsoNotify, *patch.AllowTransfer
	c.patches++
	return nil
}

// A primary lets the secondaries of the zone's providers transfer it, under their names, and nobody who is no provider of it
// any more, whichever process let them.
func TestPrimaryServesItsGuests(t *testing.T) {
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
		"not those without a name or an object": {[]*v1beta1.DNSProvider{tooLong, gone}, []string{}, []string{}},
		"without an address":                    {[]*v1beta1.DNSProvider{unknown}, []string{}, []string{"key unknown.dns.secondary.lockstep."}},
	} {
		for _, former := range []zoneConfig{{}, {transfer: []string{"key former.dns.secondary.lockstep."}, confirmed: true}} {
			sidecar := &primaryConfig{zone: bindcar.Zone{Type: bindcar.Primary, Owner: "dns/zone", AlsoNotify: []string{}, AllowTransfer: []string{"key former.dns.secondary.lockstep."}}}
			p := passOverFake(&fakePrimary{})
			p.sidecar, p.providers = sidecar, c.providers
			server := p.servers[0]
			if former.confirmed {
				p.state.configs.Store(podOf(server), former)
			}
			for range 3 {
				p.updateConfigs(t.Context(), []syncevent.ServerOutcome{{Server: server, Serial: 7}}, true)
			}
			if diff := cmp.Diff([][]string{c.notified, c.opened}, [][]string{sidecar.zone.AlsoNotify, sidecar.zone.AllowTransfer}); diff != "" || sidecar.patches != 1 {
				t.Errorf("%s: %d patches (-want +got):\n%s", name, sidecar.patches, diff)
			}
		}
	}
}

// A secondary outside follows our primary without anybody else's NOTIFY: the controller sends one while it is behind. With another
// key it is said to need the provider's.
func TestGuestFollows(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	outside := bind.Start(t, bind.Options{Role: bind.Secondary, Primary: r.primary[0], Zones: []bind.Zone{{Name: rigZone}}})
	p := followedBy("dns", "isp")
	p.Spec.Secondaries.Servers = []v1beta1.ProviderServer{{Address: outside.Addr.Addr().String(), Port: int32(outside.Addr.Port())}}
	r.keys.Set(types.NamespacedName{Namespace: "dns", Name: "isp-transfer"}, &outside.Transfer)
	r.scope.providers = []*v1beta1.DNSProvider{p}
	r.scope.servers = observe.AddProviders(r.scope.servers, r.scope.providers)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	outcome := func(result passResult) syncevent.ServerOutcome {
		n := slices.IndexFunc(result.event.Servers, func(s syncevent.ServerOutcome) bool { return s.Provider == "isp" })
		if n < 0 {
			t.Fatalf("the secondary is none of the servers: %+v", result.event.Servers)
		}
		return result.event.Servers[n]
	}
	for began := time.Now(); !outcome(r.pass()).Current; {
		if time.Since(began) > time.Minute {
			t.Fatalf("the secondary does not follow: %+v", outcome(r.pass()))
		}
	}
	stranger := bind.NewKey(outside.Transfer.Name)
	r.keys.Set(types.NamespacedName{Namespace: "dns", Name: "isp-transfer"}, &stranger)
	if o := outcome(r.pass()); o.Current || o.Err == nil || !strings.Contains(o.Err.Error(), "BADSIG") {
		t.Errorf("with a key that the secondary does not know: %+v", o)
	}
	r.withoutInstances()
	r.scope.servers = observe.AddProviders(nil, r.scope.providers)
	if result := r.pass(); result.event.Problem.Reason != status.NoPrimaryInstances || !strings.Contains(result.event.Problem.Message, "secondaries only") {
		t.Errorf("without a primary: %+v", result.event.Problem)
	}
}
