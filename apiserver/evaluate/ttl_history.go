package evaluate

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/share"
)

// maxReplacedRRsets bounds the RRsets that are remembered; what more changes within its TTL is not. The servers of one namespace have half of
// them at most: with TTLs of years, what they replace stays.
const maxReplacedRRsets = 100000

// ttlHistory remembers until when resolvers may keep what servers held before. A change that is everywhere before anybody
// asks about it leaves no other trace.
type ttlHistory struct {
	mu    sync.RWMutex
	until map[Place]map[rrset.Key]int64 // in Unix time
	// places are for RRsets, by the namespace of the server.
	places *share.Pool
	swept  time.Time
}

// recordChange notes how a server's content differs from what it was until now.
func (h *ttlHistory) recordChange(server observe.Peer, was, is *observe.Mirror, now time.Time) {
	replaced := map[rrset.Key]int64{}
	add := func(k rrset.Key) {
		if !rrset.IsServerMaintained(k.Type) {
			replaced[k] = now.Add(was.CacheDuration(k) + time.Second).Unix() // rounded up
		}
	}
	for name := range is.ChangedNames(was) {
		for s := range was.At(name) {
			if have, _ := is.Get(s.Key); !have.Equal(s) {
				add(s.Key)
			}
		}
		for s := range is.At(name) {
			if _, held := was.Get(s.Key); !held {
				add(s.Key)
			}
		}
	}
	if len(replaced) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweepExpired(now)
	h.keepReplaced(Place{Server: server, Zone: is.Zone}, replaced)
}

// keepReplaced remembers RRsets of a zone on a server. h.mu is held.
func (h *ttlHistory) keepReplaced(place Place, replaced map[rrset.Key]int64) {
	if h.until == nil {
		h.until, h.places = map[Place]map[rrset.Key]int64{}, share.NewPool(maxReplacedRRsets, maxReplacedRRsets/2)
	}
	known := h.until[place]
	if known == nil {
		known = map[rrset.Key]int64{}
		h.until[place] = known
	}
	for k, until := range replaced {
		if last, again := known[k]; again || h.places.Take(place.Server.Namespace, 1) == nil {
			known[k] = max(last, until)
		}
	}
}

// sweepExpired forgets what has expired, now and then. h.mu is held.
func (h *ttlHistory) sweepExpired(now time.Time) {
	if now.Sub(h.swept) < time.Minute {
		return
	}
	h.swept = now
	for place, known := range h.until {
		before := len(known)
		maps.DeleteFunc(known, func(_ rrset.Key, until int64) bool { return until <= now.Unix() })
		h.places.Add(place.Server.Namespace, int64(len(known)-before))
		if len(known) == 0 {
			delete(h.until, place)
		}
	}
}

// ofZone is what is remembered of a zone's servers; nil when that is nothing.
func (h *ttlHistory) ofZone(zone string, servers []observe.Server) func(observe.Peer, rrset.Key) time.Time {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !slices.ContainsFunc(servers, func(s observe.Server) bool { return h.until[PlaceOf(s, zone)] != nil }) {
		return nil
	}
	return func(server observe.Peer, k rrset.Key) time.Time {
		return h.keptUntil(Place{Server: server, Zone: zone}, k)
	}
}

// keptUntil is until when resolvers may keep what a server held before at a name and type; zero when nothing is known.
func (h *ttlHistory) keptUntil(place Place, k rrset.Key) time.Time {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if until, known := h.until[place][k]; known {
		return time.Unix(until, 0)
	}
	return time.Time{}
}
