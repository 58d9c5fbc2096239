package controller

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// peers are the servers that a zone on a server is configured with: whom a primary notifies, where a secondary transfers
// from. sure is false when they are what should be there, and nobody has looked since the controller started.
type peers struct {
	list []string
	sure bool
}

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
		case len(want) == 0 && out.Role == observe.Secondary:
		case !ok:
			p.state.peers[podOf(out.Server)] = peers{list: want}
		case !slices.Equal(known.list, want) || !known.sure && p.rested:
			if err := p.setPeers(ctx, out.Server, want); err != nil {
				log.FromContext(ctx).Info("the peers of a zone could not be set", "zone", p.zone.Spec.ZoneName, "server", out.Pod, "reason", err.Error())
				continue
			}
			p.state.peers[podOf(out.Server)] = peers{list: want, sure: true}
		}
	}
}

// peersOf are the peers that the zone should have on servers with a role.
func (p *pass) peersOf(role observe.Role) []string {
	if role == observe.Primary {
		return p.services(v1beta1.RoleSecondary)
	}
	return p.services(v1beta1.RolePrimary)
}

// setPeers changes what the zone has on a server, unless it is that already.
func (p *pass) setPeers(ctx context.Context, server observe.Server, want []string) error {
	name := source.DNSName(p.zone)
	zone, err := p.deps.Bindcar.Zone(ctx, sidecarOf(server), name)
	if err != nil {
		return err
	}
	want = slices.Concat([]string{}, want)
	patch, have := bindcar.PatchZone{AlsoNotify: &want}, zone.AlsoNotify
	if server.Role == observe.Secondary {
		patch, have = bindcar.PatchZone{Primaries: &want}, zone.Primaries
	}
	if have != nil && slices.Equal(have, want) {
		return nil
	}
	return p.deps.Bindcar.PatchZone(ctx, sidecarOf(server), name, patch)
}
