package zone

import (
	"math/rand/v2"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// Pauses before a zone is looked at again without an event. Events decide when a change goes out; these only find
// what no event tells: a server that came up late, a transfer that got lost, an update that was refused. A zone that is
// not in step is looked at soon, and less and less often, though never rarely: each pass that something else brings about
// counts too. So is what a server refused: what it lacked may have come.
const (
	firstPause       = 250 * time.Millisecond
	lastPause        = 10 * time.Second
	firstRefusePause = time.Second
	refusePause      = time.Minute
	idlePause        = 5 * time.Minute
)

// idle is how long the zone may rest after the pass if nothing happens.
func (p *pass) idle(req ctrl.Request) time.Duration {
	pause := p.pause(req, p.event)
	if next, ok := p.nextTry(); ok && !p.event.Paused {
		return min(pause, next)
	}
	return pause
}

// pause is how long the zone may rest if nothing happens and nothing was refused.
func (r *zoneReconciler) pause(req ctrl.Request, e syncevent.SyncCompleted) time.Duration {
	stuck := len(e.Unprogrammed) > 0
	for _, s := range e.Servers {
		switch {
		case !s.Addr.IsValid() || s.Current:
			// A pod without an address has nothing to be asked; an event tells when it gets one.
		case terminal(s.Err):
			stuck = true
		default:
			return jitter(r.backoff.When(req))
		}
	}
	r.backoff.Forget(req)
	if stuck && !e.Paused {
		return jitter(refusePause)
	}
	return jitter(idlePause)
}

// jitter spreads what would come at the same time, by a tenth.
func jitter(d time.Duration) time.Duration {
	return d - d/20 + rand.N(d/10+1) //nolint:gosec // spreads load
}
