package bind

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// secondaryConfig is the sidecar of a secondary that transfers its zone from the given primaries.
type secondaryConfig struct {
	Sidecar
	primaries []string
}

func (c *secondaryConfig) Zone(context.Context, bindcar.Address, string) (bindcar.Zone, error) {
	return bindcar.Zone{Type: bindcar.Secondary, Owner: "dns/zone", Primaries: c.primaries}, nil
}

func (c *secondaryConfig) PatchZone(_ context.Context, _ bindcar.Address, _ string, patch bindcar.PatchZone) error {
	c.primaries = *patch.Primaries
	return nil
}

// at returns the zone dns/zone on a server, with primaries at an address.
func at(server observe.Server, sidecar Sidecar, zone host.Zone) *Host {
	zone.Object = &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "zone", UID: "zone"}}
	zone.Object.Spec.ZoneName, zone.Name = "example.test", "example.test."
	zone.Key = membership.KeyOfZone(zone.Object)
	return New(&host.Access{Zone: &zone, Server: server}, nil, sidecar, nil, &host.Memory{})
}

// The primary's Service has another address. A secondary that cannot transfer the zone any more, for that reason, gets it,
// whether this process has set the former address or another one has; one whose sidecar does not answer is not waited for.
func TestSecondaryGetsTheNewAddressOfItsPrimary(t *testing.T) {
	const former, current = "10.96.0.1:53", "10.96.0.2:53"
	server := observe.Server{Namespace: "dns", Instance: "secondary", Pod: "secondary-0", Role: observe.Secondary}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"in sync":              {nil, current},
		"cannot connect":       {&bindcar.Error{Code: http.StatusFailedDependency}, current},
		"does not move":        {&transferError{}, current},
		"sidecar is silent":    {&bindcar.Error{}, former},
		"another error of DNS": {errors.New("no answer"), former},
	} {
		t.Run(name, func(t *testing.T) {
			sidecar := &secondaryConfig{primaries: []string{former}}
			h := at(server, sidecar, host.Zone{Primaries: []string{current}})
			h.known.config = &zoneConfig{servers: []string{former}, confirmed: true}
			h.Configure(t.Context(), true, c.err, false)
			if !slices.Equal(sidecar.primaries, []string{c.want}) {
				t.Errorf("set by this process: the secondary transfers from %q, want %s", sidecar.primaries, c.want)
			}
		})
	}
	t.Run("set by another process", func(t *testing.T) {
		sidecar := &secondaryConfig{primaries: []string{former}}
		h := at(server, sidecar, host.Zone{Primaries: []string{current}})
		for range 2 {
			h.Configure(t.Context(), true, &transferError{}, false)
		}
		if !slices.Equal(sidecar.primaries, []string{current}) {
			t.Errorf("the secondary transfers from %q, want %s", sidecar.primaries, current)
		}
	})
}

// primaryConfig is the sidecar of a primary.
type primaryConfig struct {
	Sidecar
	zone    bindcar.Zone
	patches int
}

func (c *primaryConfig) Zone(context.Context, bindcar.Address, string) (bindcar.Zone, error) {
	return c.zone, nil
}

func (c *primaryConfig) PatchZone(_ context.Context, _ bindcar.Address, _ string, patch bindcar.PatchZone) error {
	c.zone.AlsoNotify, c.zone.AllowTransfer = *patch.AlsoNotify, *patch.AllowTransfer
	if patch.OwnerUID != nil {
		c.zone.OwnerUID = *patch.OwnerUID
	}
	if patch.KeySecret != nil {
		c.zone.DNSSECPolicy, c.zone.KeySecret = *patch.DNSSECPolicy, *patch.KeySecret
	}
	c.patches++
	return nil
}

// A primary lets those transfer the zone who are guests, and nobody who is none any more, whichever process let them. A zone that an earlier
// version has added gets the UID of its owner.
func TestPrimaryServesItsGuests(t *testing.T) {
	for name, c := range map[string]struct{ notified, opened []string }{
		"nobody": {[]string{}, []string{}},
		"two": {
			[]string{"192.0.2.1:53 key isp.dns.secondary.lockstep.", "192.0.2.2:53 key b.c.dns.secondary.lockstep."},
			[]string{"key isp.dns.secondary.lockstep.", "key b.c.dns.secondary.lockstep."},
		},
		"without an address": {[]string{}, []string{"key unknown.dns.secondary.lockstep."}},
	} {
		for _, former := range []zoneConfig{{}, {transfer: []string{"key former.dns.secondary.lockstep."}, confirmed: true}} {
			sidecar := &primaryConfig{zone: bindcar.Zone{Type: bindcar.Primary, Owner: "dns/zone", AlsoNotify: []string{}, AllowTransfer: []string{"key former.dns.secondary.lockstep."}}}
			h := at(observe.Server{Namespace: "dns", Instance: "primary", Pod: "primary-0", Role: observe.Primary}, sidecar, host.Zone{Notified: c.notified, TransferKeys: c.opened})
			if former.confirmed {
				h.known.config = &former
			}
			for range 3 {
				h.Configure(t.Context(), true, nil, true)
			}
			if diff := cmp.Diff([][]string{c.notified, c.opened}, [][]string{sidecar.zone.AlsoNotify, sidecar.zone.AllowTransfer}); diff != "" || sidecar.patches != 1 {
				t.Errorf("%s: %d patches (-want +got):\n%s", name, sidecar.patches, diff)
			}
			if sidecar.zone.OwnerUID != "zone" {
				t.Errorf("%s: the owner's UID is %q", name, sidecar.zone.OwnerUID)
			}
		}
	}
}

// A signed zone's keys are kept where they are to be by now: they were not to be kept when it was signed, or belonged to another owner.
func TestKeysAreKeptWhereTheyAreToBe(t *testing.T) {
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "primary"}, Spec: v1beta1.Bind9InstanceSpec{Role: v1beta1.RolePrimary}}
	for _, former := range []string{"", "other-dnssec-0"} {
		for _, known := range []*zoneConfig{nil, {policy: "default", keySecret: former, confirmed: true}} {
			sidecar := &primaryConfig{zone: bindcar.Zone{
				Type: bindcar.Primary, Owner: "dns/zone", AlsoNotify: []string{}, AllowTransfer: []string{}, DNSSECPolicy: "default", KeySecret: former,
			}}
			h := at(observe.Server{Namespace: "dns", Instance: "primary", Pod: "primary-0", Role: observe.Primary}, sidecar, host.Zone{})
			h.Object.Spec.DNSSECPolicy, h.Object.Status.DNSSEC = "default", &v1beta1.DNSSECStatus{Policy: "default"}
			var err error
			if h.Signing, err = dnssec.SigningOf(t.Context(), fake.NewClientBuilder().Build(), h.Object, []*v1beta1.Bind9Instance{instance}, ""); err != nil {
				t.Fatal(err)
			}
			h.known.config = known
			for range 3 {
				h.Configure(t.Context(), true, nil, true)
			}
			want := h.Signing.KeySecretName(h.Object)
			if want == "" || sidecar.zone.KeySecret != want || sidecar.zone.DNSSECPolicy != "default" || sidecar.patches != 1 {
				t.Errorf("in %q before, known %t: in %q after %d patches, want %q", former, known != nil, sidecar.zone.KeySecret, sidecar.patches, want)
			}
		}
	}
}

// A secondary without data is told from one that stays at serial 0.
func TestTransferErrorSaysWhatTheSecondaryHas(t *testing.T) {
	for want, e := range map[string]transferError{
		"the secondary has no data instead of serial 0 since":                        {isEmpty: true},
		"the secondary stays at serial 0 instead of serial 7 since":                  {want: 7},
		"the secondary holds other data than the primaries on serial 0 since":        {},
		"the secondary stays at serial 4294967295 instead of serial 0 since 1970-01": {have: 4294967295, since: time.Unix(0, 0)},
	} {
		if got := e.Error(); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
