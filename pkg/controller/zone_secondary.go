package controller

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// syncSecondaries makes sure that every secondary has the zone, and sends a NOTIFY to those that are behind. Then the
// outcome of every server is known.
func (p *pass) syncSecondaries(ctx context.Context) {
	p.event.Servers = p.outcomes()
	var wg sync.WaitGroup
	for i := range p.event.Servers {
		out := &p.event.Servers[i]
		if out.Role == observe.Primary {
			p.primaryOutcome(out)
			continue
		}
		wg.Go(func() { p.syncSecondary(ctx, out) })
	}
	wg.Wait()
}

func (p *pass) primaryOutcome(out *syncevent.ServerOutcome) {
	for _, primary := range p.primaries {
		if primary.server.Pod == out.Pod && primary.server.Namespace == out.Namespace {
			out.Serial, out.Err = primary.seen.Serial, primary.err
			out.Current = primary.err == nil && primary.seen.Serial == p.event.Serial && p.event.Serial != 0
		}
	}
}

// syncSecondary leaves alone a secondary that has the serial of the pass. Serials are compared for equality: a
// secondary that is ahead is as wrong as one that is behind (RFC 1996 and the trap of a recreated zone).
func (p *pass) syncSecondary(ctx context.Context, out *syncevent.ServerOutcome) {
	if !out.Addr.IsValid() || p.event.Serial == 0 {
		return
	}
	seen := p.deps.Observer.Serial(ctx, out.Addr, p.name)
	instance := p.instanceOf(out.Server)
	switch {
	case seen.Rcode == observe.NoReply:
		out.Err = seen.Err
	case !seen.Authoritative:
		out.Err = p.createSecondary(ctx, out.Server, instance)
	case seen.Serial == p.event.Serial:
		out.Serial, out.Current = seen.Serial, true
	case rrset.SerialLess(p.event.Serial, seen.Serial):
		// It would call itself up to date: only a transfer of the whole zone brings it back (RFC 1982 section 3.2).
		out.Serial = seen.Serial
		_, out.Err = p.deps.Bindcar.Command(ctx, sidecarOf(out.Server), source.DNSName(p.zone), "retransfer")
	default:
		out.Serial = seen.Serial
		out.Err = p.notify(ctx, out.Server, instance)
	}
}

func (p *pass) createSecondary(ctx context.Context, server observe.Server, instance *v1beta1.Bind9Instance) error {
	primaries := p.services(v1beta1.RolePrimary)
	if len(primaries) == 0 {
		return fmt.Errorf("no primary of zone %s has a Service address yet", p.zone.Spec.ZoneName)
	}
	err := p.deps.Bindcar.CreateZone(ctx, sidecarOf(server), bindcar.CreateZone{
		ZoneName: source.DNSName(p.zone), ZoneType: bindcar.Secondary,
		ZoneConfig: bindcar.ZoneConfig{Primaries: primaries},
	})
	if bindcar.IsExists(err) {
		// The zone is there and has no data yet: the transfer is under way, or it has to be asked for.
		return p.notify(ctx, server, instance)
	}
	return err
}

// notify tells a secondary that the zone changed (RFC 1996), beside what BIND's own primaries send.
func (p *pass) notify(ctx context.Context, server observe.Server, instance *v1beta1.Bind9Instance) error {
	key, err := p.keys.transfer(ctx, instance)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("zone transfer triggered", "zone", p.zone.Spec.ZoneName, "server", server.Pod, "serial", p.event.Serial)
	return wire.Notify(ctx, server.Addr, p.name, p.event.Serial, key)
}

func (p *pass) instanceOf(server observe.Server) *v1beta1.Bind9Instance {
	for _, i := range p.instances {
		if i.Namespace == server.Namespace && i.Name == server.Instance {
			return i
		}
	}
	return nil
}
