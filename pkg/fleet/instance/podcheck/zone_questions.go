package podcheck

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// zoneQuestions asks a server whether it serves zones.
type zoneQuestions struct {
	dns    DNS
	server observe.Peer
	// key returns one that the server answers whoever else may ask it; nil if there is none.
	key func(context.Context) *wire.Key
}

// transferKey reads the transfer key of an instance when it is needed; nil if it cannot be read.
func (c *Checker) transferKey(instance *v1beta1.Bind9Instance) func(context.Context) *wire.Key {
	return func(ctx context.Context) *wire.Key {
		key, err := c.keys.TransferKey(ctx, instance)
		if err != nil {
			return nil // A missing key is told where it is made.
		}
		return key
	}
}

// countServed counts the required zones that the pod serves. A zone that DNS answered for once counts from then on while
// named lists it with a serial.
func (q zoneQuestions) countServed(ctx context.Context, gate *readinessGate, list bindcar.ZoneList, required []string) int {
	loaded := make(map[string]bool, len(list.Items))
	for _, zone := range list.Items {
		loaded[zone.Name] = zone.Serial != nil
	}
	var count atomic.Int32
	var group errgroup.Group
	group.SetLimit(maxQuestions)
	for _, zone := range required {
		_, isServed := gate.served.Load(zone)
		switch {
		case !loaded[zone]:
			gate.served.Delete(zone)
		case isServed:
			count.Add(1)
		default:
			group.Go(func() error {
				if q.isServed(ctx, zone+".") {
					gate.served.Store(zone, true)
					count.Add(1)
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	return int(count.Load())
}

// isServed asks as resolvers do. Where allowQuery refuses them from here, a key is answered nevertheless, and those whom the list
// names are.
func (q zoneQuestions) isServed(ctx context.Context, zone string) bool {
	answer := q.dns.Serial(ctx, q.server, zone, nil)
	if answer.Reason() != observe.ReasonRefused {
		return answer.Authoritative
	}
	key := q.key(ctx)
	return key != nil && q.dns.Serial(ctx, q.server, zone, key).Authoritative
}
