package zone

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// syncSecondaries makes sure that every secondary has the zone and follows. Then the outcome of every server is known.
func (p *pass) syncSecondaries(ctx context.Context) {
	p.event.Servers = p.outcomes()
	var wg sync.WaitGroup
	for i := range p.event.Servers {
		out := &p.event.Servers[i]
		if out.Role == observe.Primary {
			p.primaryOutcome(out)
			continue
		}
		known := p.state.secondary(podOf(out.Server))
		wg.Go(func() { p.syncSecondary(ctx, out, known) })
	}
	wg.Wait()
}

func (p *pass) primaryOutcome(out *syncevent.ServerOutcome) {
	for _, primary := range p.primaries {
		if podOf(primary.server) == podOf(out.Server) {
			out.Serial, out.Err = primary.seen.Serial, primary.err
			out.Current = primary.err == nil && primary.seen.Serial == p.event.Serial && p.event.Serial != 0
		}
	}
}

// syncSecondary leaves alone a secondary that has the serial of the pass, and its content where that may differ. Serials
// are compared for equality: a secondary that is ahead is as wrong as one that is behind (RFC 1996 and the trap of a
// recreated zone).
func (p *pass) syncSecondary(ctx context.Context, out *syncevent.ServerOutcome, known *secondaryState) {
	if !out.Addr.IsValid() || p.event.Serial == 0 {
		return
	}
	seen := p.serial(ctx, out.Server)
	out.Serial = seen.Serial
	switch {
	case seen.Rcode == observe.NoReply:
		out.Err = seen.Err
	case seen.Authoritative && seen.Serial == p.event.Serial:
		out.Current, out.Err = p.verify(ctx, out.Server, known)
		if out.Current && !known.since.IsZero() {
			*known = secondaryState{}
			p.wake(out.Namespace, out.Instance)
		}
	case p.event.Paused:
	case !seen.Authoritative:
		if out.Err = p.createSecondary(ctx, out.Server); bindcar.IsExists(out.Err) {
			// The zone is there and has no data yet: the transfer is under way, or it has to be asked for.
			out.Err = p.hurry(ctx, out.Server, known, seen)
		}
	default:
		if out.Err = p.retire(ctx, out.Server); out.Err == nil {
			out.Err = p.hurry(ctx, out.Server, known, seen)
		}
	}
}

func (p *pass) createSecondary(ctx context.Context, server observe.Server) error {
	primaries := p.services(v1beta1.RolePrimary)
	if len(primaries) == 0 {
		return fmt.Errorf("no primary of zone %s has a Service address yet", p.zone.Spec.ZoneName)
	}
	err := p.deps.Sidecar.CreateZone(ctx, fleet.SidecarOf(server), bindcar.CreateZone{
		ZoneName: source.DNSName(p.zone), ZoneType: bindcar.Secondary,
		ZoneConfig: bindcar.ZoneConfig{Primaries: primaries},
	})
	if err == nil {
		p.created(server, peers{list: primaries})
	}
	return err
}

// created notes that a zone is on a server now.
func (p *pass) created(server observe.Server, with peers) {
	with.sure = true
	p.comparing.Lock()
	p.state.peers[podOf(server)] = with
	p.comparing.Unlock()
	p.wake(server.Namespace, server.Instance)
}

// notify tells a secondary that the zone changed (RFC 1996), beside what BIND's own primaries send.
func (p *pass) notify(ctx context.Context, server observe.Server) error {
	key, err := p.keys.TransferKey(ctx, p.instanceOf(server))
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("zone transfer triggered", "zone", p.zone.Spec.ZoneName, "server", server.Pod, "serial", p.event.Serial)
	return wire.Notify(ctx, server.Addr, p.state.desired.Name, p.event.Serial, key)
}
