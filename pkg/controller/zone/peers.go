package zone

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// peers are the servers that a zone on a server is configured with: whom a primary notifies, where a secondary transfers
// from; and with which policy a primary signs it. sure is false when they are what should be there, and nobody has looked since the controller started.
type peers struct {
	list   []string
	policy string
	sure   bool
}

func (p peers) same(o peers) bool { return slices.Equal(p.list, o.list) && p.policy == o.policy }

// updatePeers changes the configuration of a zone where it is, when servers have joined or left. What an earlier process
// has set is looked at once, at leisure: in the first pass that finds the zone at rest. A failure is tried again with the
// next pass; what it concerns works without, only slower.
func (p *pass) updatePeers(ctx context.Context) {
	if p.event.Paused {
		return
	}
	for _, out := range p.event.Servers {
		if out.Serial == 0 || out.Err != nil {
			continue
		}
		want := p.peersOf(out.Role)
		known, ok := p.state.peers[podOf(out.Server)]
		switch {
		case len(want.list) == 0 && out.Role == observe.Secondary:
		case !ok && want.policy == p.toldPolicy():
			p.state.peers[podOf(out.Server)] = want
		case !known.same(want) || !known.sure && p.rested:
			if err := p.setPeers(ctx, out.Server, want); err != nil {
				log.FromContext(ctx).Info("the peers of a zone could not be set", "zone", p.zone.Spec.ZoneName, "server", out.Pod, "reason", err.Error())
				if want.policy != known.policy {
					p.event.Remark = fmt.Sprintf("dnssecPolicy %q could not be set on %s: %v", want.policy, out.Pod, err)
				}
				continue
			}
			want.sure = true
			p.state.peers[podOf(out.Server)] = want
		}
	}
}

// peersOf are the peers that the zone should have on servers with a role.
func (p *pass) peersOf(role observe.Role) peers {
	if role == observe.Primary {
		return peers{list: p.services(v1beta1.RoleSecondary), policy: p.signing.policy}
	}
	return peers{list: p.services(v1beta1.RolePrimary)}
}

// toldPolicy is the one that the zone's status tells of: before this process has looked at a primary, that it has it.
func (p *pass) toldPolicy() string {
	if p.zone.Status.DNSSEC == nil {
		return ""
	}
	return p.zone.Status.DNSSEC.Policy
}

// setPeers changes what the zone has on a server, unless it is that already.
func (p *pass) setPeers(ctx context.Context, server observe.Server, want peers) error {
	name := source.DNSName(p.zone)
	zone, err := p.deps.Sidecar.Zone(ctx, fleet.SidecarOf(server), name)
	if err != nil {
		return err
	}
	if server.Role == observe.Primary && zone.Type == bindcar.Secondary {
		return p.reinstate(ctx, server)
	}
	list := slices.Concat([]string{}, want.list)
	patch, have := bindcar.PatchZone{AlsoNotify: &list}, zone.AlsoNotify
	if server.Role == observe.Secondary {
		patch, have = bindcar.PatchZone{Primaries: &list}, zone.Primaries
	}
	if zone.DNSSECPolicy != want.policy {
		secret := p.signing.secret(p.zone)
		patch.DNSSECPolicy, patch.KeySecret, have = &want.policy, &secret, nil
		if err := p.ensureKeySecret(ctx); err != nil {
			return err
		}
	}
	if have != nil && slices.Equal(have, list) {
		return nil
	}
	return p.deps.Sidecar.PatchZone(ctx, fleet.SidecarOf(server), name, patch)
}
