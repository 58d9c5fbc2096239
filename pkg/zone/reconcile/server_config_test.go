package reconcile

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// secondaryConfig is the sidecar of a secondary that transfers its zone from the given primaries.
type secondaryConfig struct {
	sidecarClient
	primaries []string
}

func (c *secondaryConfig) Zone(context.Context, bindcar.Address, string) (bindcar.Zone, error) {
	return bindcar.Zone{Type: bindcar.Secondary, Owner: "dns/zone", Primaries: c.primaries}, nil
}

func (c *secondaryConfig) PatchZone(_ context.Context, _ bindcar.Address, _ string, patch bindcar.PatchZone) error {
	c.primaries = *patch.Primaries
	return nil
}

// The primary's Service has another address. A secondary that cannot transfer the zone any more, for that reason, gets it,
// whether this process has set the former address or another one has; one whose sidecar does not answer is not waited for.
func TestSecondaryGetsTheNewAddressOfItsPrimary(t *testing.T) {
	const former, current = "10.96.0.1:53", "10.96.0.2:53"
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
			p := passOverFake(&fakePrimary{})
			p.sidecar = sidecar
			p.instances[0].Status.ServiceAddress = "10.96.0.2"
			server := observe.Server{Namespace: "dns", Instance: "secondary", Pod: "secondary-0", Role: observe.Secondary}
			p.state.configs.Store(podOf(server), zoneConfig{servers: []string{former}, confirmed: true})
			outcomes := []statuswriter.ServerOutcome{{Server: server, Serial: 7, Err: c.err}}
			p.updateConfigs(t.Context(), outcomes, false)
			if !slices.Equal(sidecar.primaries, []string{c.want}) {
				t.Errorf("set by this process: the secondary transfers from %q, want %s", sidecar.primaries, c.want)
			}
		})
	}
	t.Run("set by another process", func(t *testing.T) {
		sidecar := &secondaryConfig{primaries: []string{former}}
		p := passOverFake(&fakePrimary{})
		p.sidecar = sidecar
		p.instances[0].Spec.Role, p.instances[0].Status.ServiceAddress = v1beta1.RolePrimary, "10.96.0.2"
		server := observe.Server{Namespace: "dns", Instance: "secondary", Pod: "secondary-0", Role: observe.Secondary}
		for range 2 {
			p.updateConfigs(t.Context(), []statuswriter.ServerOutcome{{Server: server, Serial: 7, Err: &transferError{}}}, false)
		}
		if !slices.Equal(sidecar.primaries, []string{current}) {
			t.Errorf("the secondary transfers from %q, want %s", sidecar.primaries, current)
		}
	})
}
