package zone

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

const (
	// leadInterval is how soon the zone that leads on a server is tried again, refusedInterval that if only a person can help.
	leadInterval    = 2 * time.Second
	refusedInterval = 10 * time.Second
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
	lead   membership.ZoneKey
	at     time.Time
	others map[membership.ZoneKey]struct{}
}

// record takes over how a pass over a zone ended on its servers, and reports whether the zone leads on any, and whether one
// works again.
func (r *recoveries) record(zone membership.ZoneKey, servers []syncevent.ServerOutcome, now time.Time) (leads, recovered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, out := range servers {
		pod := podOf(out.Server)
		if out.Err == nil || !out.Addr.IsValid() {
			recovered = r.leave(pod, zone) || recovered
			continue
		}
		leads = r.join(pod, zone, now) || leads
	}
	return leads, recovered
}

// leadPause returns how long a zone that leads on a server may rest after a pass; idleInterval for any other.
func leadPause(leads bool, event syncevent.SyncCompleted) time.Duration {
	switch {
	case !leads || event.Paused:
		return idleInterval
	case event.Failure.Reason != "":
		return jitter(refusedInterval)
	}
	return jitter(leadInterval)
}

// join adds a zone to those that cannot be brought to a server, and reports whether it leads them.
func (r *recoveries) join(pod types.NamespacedName, zone membership.ZoneKey, now time.Time) bool {
	s := r.servers[pod]
	if s == nil {
		if r.servers == nil {
			r.servers = map[types.NamespacedName]*failingServer{}
		}
		s = &failingServer{lead: zone, others: map[membership.ZoneKey]struct{}{}}
		r.servers[pod] = s
	}
	if s.lead != zone && now.Sub(s.at) < leadLife {
		s.others[zone] = struct{}{}
		return false
	}
	delete(s.others, zone)
	s.lead, s.at = zone, now
	return true
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
