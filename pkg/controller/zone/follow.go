package zone

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// retire makes a zone on a primary that does not sign it one that follows the signer: named changes the type of no zone,
// so it is taken off and put on again. In between, for as long as the transfer takes, the server does not answer for it.
func (p *pass) retire(ctx context.Context, server observe.Server) error {
	instance := p.instanceOf(server)
	if instance == nil || instance.Spec.Role.Normalize() != v1beta1.RolePrimary || p.follows(server) {
		return nil
	}
	name := source.DNSName(p.zone)
	zone, err := p.deps.Sidecar.Zone(ctx, fleet.SidecarOf(server), name)
	if err != nil {
		return err
	}
	if zone.Type != bindcar.Secondary {
		log.FromContext(ctx).Info("zone follows its signer", "zone", p.zone.Spec.ZoneName, "server", server.Pod)
		if err := p.deps.Sidecar.DeleteZone(ctx, fleet.SidecarOf(server), name); err != nil {
			return err
		}
		if err := p.createSecondary(ctx, server); err != nil {
			return err
		}
	}
	p.comparing.Lock()
	defer p.comparing.Unlock()
	p.state.following[podOf(server)] = struct{}{}
	return nil
}

func (p *pass) follows(server observe.Server) bool {
	p.comparing.Lock()
	defer p.comparing.Unlock()
	_, ok := p.state.following[podOf(server)]
	return ok
}

// reinstate takes a zone off a primary that has followed another: the next pass, which comes at once, puts it there whole.
func (p *pass) reinstate(ctx context.Context, server observe.Server) error {
	log.FromContext(ctx).Info("zone follows nobody any more", "zone", p.zone.Spec.ZoneName, "server", server.Pod)
	if err := p.deps.Sidecar.DeleteZone(ctx, fleet.SidecarOf(server), source.DNSName(p.zone)); err != nil {
		return err
	}
	delete(p.state.following, podOf(server))
	p.world.wake(membership.KeyOfZone(p.zone))
	return nil
}
