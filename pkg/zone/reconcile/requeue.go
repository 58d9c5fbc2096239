package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// Time until a zone is looked at again without an event. Events decide when a change goes out; these intervals only find
// what no event reports: a server that came up late, a transfer that got lost, an update that was refused. A zone that is
// not in sync is looked at soon, and less and less often, though never rarely: each pass that something else brings about
// counts too. So is what a server refused: what it lacked may have come.
const (
	firstInterval = 250 * time.Millisecond
	lastInterval  = 10 * time.Second
	idleInterval  = 5 * time.Minute
	// foreignInterval is how often a zone is looked at that is on servers of others.
	foreignInterval = host.ForeignRest
)

// requeueAfter returns how long the zone may rest after the pass if nothing happens.
func requeueAfter(result passResult, backoff workqueue.TypedRateLimiter[ctrl.Request], req ctrl.Request) time.Duration {
	if result.remark != "" || result.isUnreached() || slices.ContainsFunc(result.Primaries, func(q primary.State) bool { return q.Overtaken }) {
		return jitter(backoff.When(req))
	}
	after := pauseAfter(result.event, backoff, req)
	if result.rest > 0 {
		after = min(after, jitter(result.rest))
	}
	if result.event.Paused {
		return after
	}
	for _, q := range result.Primaries {
		if look, ok := q.Known.NextLook(result.event.At); ok && q.Err == nil {
			after = min(after, look)
		}
		if retry, ok := q.Known.NextRetry(result.event.At); ok && (q.Err == nil || host.IsTerminal(q.Err)) {
			after = min(after, retry)
		}
	}
	return after
}

// pauseAfter returns how long the zone may rest if nothing happens and nothing was refused.
func pauseAfter(event statuswriter.SyncCompleted, backoff workqueue.TypedRateLimiter[ctrl.Request], req ctrl.Request) time.Duration {
	stuck := len(event.Unprogrammed) > 0
	for _, s := range event.Servers {
		switch {
		case !s.Addr.IsValid() || s.Current:
			// A pod without an address cannot be asked; an event reports when it gets one.
		case s.Role == observe.Secondary && event.Serial == 0:
			// No primary says what it should have.
		case host.IsTerminal(s.Err):
			stuck = true
		default:
			return jitter(backoff.When(req))
		}
	}
	backoff.Forget(req)
	if stuck && !event.Paused {
		return jitter(content.RefusalPause)
	}
	return jitter(idleInterval)
}

// jitter spreads what would come at the same time, by a tenth.
func jitter(d time.Duration) time.Duration { return wait.Jitter(d-d/20, 0.1) }
