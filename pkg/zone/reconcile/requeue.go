package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
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
		case s.Role == observe.Secondary && !event.SerialKnown:
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

const (
	// leadInterval is how soon the zone that leads on a server is tried again, refusedInterval that if only a person can help
	// and nobody has for the time of personTimeout.
	leadInterval    = 2 * time.Second
	refusedInterval = 10 * time.Second
	personTimeout   = 5 * time.Minute
	// leadLife is after how long without a pass another zone takes the lead, serverLife after how long a server is no longer any zone's.
	leadLife, serverLife = time.Minute, 10 * time.Minute
)

// recoveries knows the servers that zones cannot be brought to. On each, one zone leads: it is tried often, and the others
// are enqueued when it succeeds. So all learn within seconds that a server works again, and few ask.
type recoveries struct {
	enqueue func(membership.ZoneKey)

	mu      sync.Mutex
	servers map[types.NamespacedName]*failingServer
	// swept is when servers that nobody has tried for serverLife were dropped last: a DNSProvider may have had any number of addresses.
	swept time.Time
}

type failingServer struct {
	// since is the time of the first failure, at that of the lead's last one.
	since, at time.Time
	lead      membership.ZoneKey
	others    map[membership.ZoneKey]struct{}
}

// record takes over how a pass over a zone ended on its servers. It returns since when a server fails on which the zone leads,
// of several the last one, zero if it leads on none, and reports whether one works again.
func (r *recoveries) record(zone membership.ZoneKey, servers []statuswriter.ServerOutcome, now time.Time) (leads time.Time, recovered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, out := range servers {
		pod := host.IDOf(out.Server)
		if out.Err == nil || !out.Addr.IsValid() {
			recovered = r.leave(pod, zone) || recovered
			continue
		}
		if since := r.join(pod, zone, now); since.After(leads) {
			leads = since
		}
	}
	return leads, recovered
}

// leadPause returns how long a zone may rest after a pass that leads on a server, which fails since a time; idleInterval for a
// zone that leads on none.
func leadPause(leads time.Time, event statuswriter.SyncCompleted) time.Duration {
	switch {
	case leads.IsZero() || event.Paused:
		return idleInterval
	case event.Failure.Reason != "" && event.At.Sub(leads) >= personTimeout:
		return jitter(refusedInterval)
	}
	return jitter(leadInterval)
}

// join adds a zone to those that cannot be brought to a server. It returns since when the server fails if the zone leads them.
func (r *recoveries) join(pod types.NamespacedName, zone membership.ZoneKey, now time.Time) (leads time.Time) {
	s := r.servers[pod]
	if s == nil {
		if now.Sub(r.swept) >= serverLife {
			maps.DeleteFunc(r.servers, func(_ types.NamespacedName, s *failingServer) bool { return now.Sub(s.at) >= serverLife })
			r.swept = now
		}
		if r.servers == nil {
			r.servers = map[types.NamespacedName]*failingServer{}
		}
		s = &failingServer{since: now, lead: zone, others: map[membership.ZoneKey]struct{}{}}
		r.servers[pod] = s
	}
	if s.lead != zone && now.Sub(s.at) < leadLife {
		s.others[zone] = struct{}{}
		return leads
	}
	delete(s.others, zone)
	s.lead, s.at = zone, now
	return s.since
}

// leave takes a zone away, if it is there. The others follow its lead.
func (r *recoveries) leave(pod types.NamespacedName, zone membership.ZoneKey) (was bool) {
	s := r.servers[pod]
	if s == nil {
		return false
	}
	if s.lead != zone {
		_, was = s.others[zone]
		delete(s.others, zone)
		return was
	}
	delete(r.servers, pod)
	for other := range s.others {
		r.enqueue(other)
	}
	return true
}

// forget takes a zone away that is gone.
func (r *recoveries) forget(zone membership.ZoneKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pod := range r.servers {
		r.leave(pod, zone)
	}
}
