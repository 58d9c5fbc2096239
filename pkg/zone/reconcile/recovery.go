package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

const (
	// leadInterval is how soon the zone that leads on a server is tried again, refusedInterval that if only a person can help
	// and nobody has for the time of personPatience.
	leadInterval    = 2 * time.Second
	refusedInterval = 10 * time.Second
	personPatience  = 5 * time.Minute
	// leadLife is after how long without a pass another zone takes the lead.
	leadLife = time.Minute
)

// recoveries knows the servers that zones cannot be brought to. On each, one zone leads: it is tried often, and the others
// are enqueued when it succeeds. So all learn within seconds that a server works again, and few ask.
type recoveries struct {
	enqueue func(membership.ZoneKey)

	mu      sync.Mutex
	servers map[types.NamespacedName]*failingServer
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
	case event.Failure.Reason != "" && event.At.Sub(leads) >= personPatience:
		return jitter(refusedInterval)
	}
	return jitter(leadInterval)
}

// join adds a zone to those that cannot be brought to a server. It returns since when the server fails if the zone leads them.
func (r *recoveries) join(pod types.NamespacedName, zone membership.ZoneKey, now time.Time) (leads time.Time) {
	s := r.servers[pod]
	if s == nil {
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
