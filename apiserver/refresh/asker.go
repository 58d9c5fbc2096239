package refresh

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// asker asks servers, and keeps their answers where the evaluator finds them.
type asker struct {
	options  Options
	index    *desired.Index
	answers  *evaluate.Answers
	observer *observe.Observer
	keys     *tsigkey.Cache
	schedule transferSchedule
	meter    *meter
	// sidecars is nil where no sidecar is asked.
	sidecars *bindcar.Client

	podQuestions  inflight[netip.AddrPort]
	zoneQuestions inflight[evaluate.Place]
}

// askZones asks all servers of some zones at once, and waits for answers from since or later, up to the deadline. With a zero
// since only those are asked that have never answered.
func (a *asker) askZones(ctx context.Context, zones map[*desired.Zone]bool, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
	defer cancel()
	var wg sync.WaitGroup
	for z := range zones {
		for _, s := range z.Servers {
			if s.Addr.IsValid() && (!since.IsZero() || a.answers.Full(evaluate.Place{Server: s.Addr, Zone: z.Declared.ZoneName()}) == nil) {
				wg.Go(func() { a.askServer(ctx, z, s, since) })
			}
		}
	}
	wg.Wait()
}

// askServer asks one server for one zone. Answers from before the zone was declared as it is now are never used.
func (a *asker) askServer(ctx context.Context, z *desired.Zone, s observe.Server, since time.Time) {
	if since.Before(z.Since) {
		since = z.Since
	}
	place := evaluate.Place{Server: s.Addr, Zone: z.Declared.ZoneName()}
	o, ok := a.observe(ctx, z, s, place, since)
	switch {
	case ok && (ctx.Err() == nil || o.Rcode != observe.NoReply):
		a.answers.Keep(place, o)
	case !errors.Is(ctx.Err(), context.Canceled): // Else nobody waits any more.
		a.answers.Keep(place, evaluate.NoAnswer(s.Addr, place.Zone, since))
	}
}

// observe reports whether the server was asked.
func (a *asker) observe(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place, since time.Time) (o observe.Observation, ok bool) {
	var secret types.NamespacedName
	var key *wire.Key
	if instance := z.Instance(s); instance != nil {
		secret = types.NamespacedName{Namespace: s.Namespace, Name: named.TransferKeySecretName(instance)}
		if key, _ = a.keys.Get(ctx, secret); key == nil && ctx.Err() != nil {
			return o, false // Others would share what is asked without a key.
		}
	}
	if a.schedule.isDue(place) {
		a.observer.Invalidate(place.Server, place.Zone)
	}
	a.meter.nameServer(s)
	o = a.observer.Observe(ctx, place.Server, place.Zone, key, since)
	var we *wire.Error
	if errors.As(o.Err, &we) && we.TSIGError != 0 {
		a.keys.Invalidate(secret, key)
	}
	return o, true
}
