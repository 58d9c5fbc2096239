package engine

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// formerMost bounds the RRsets that are remembered; what more changes in the time of its TTL is not.
const formerMost = 100000

// former remembers until when resolvers may keep what servers held before. A change that is everywhere before anybody asks
// about it leaves no other trace.
type former struct {
	mu    sync.RWMutex
	until map[zoneOn]map[rrset.Key]int64 // in Unix time
	count int
	swept time.Time
}

// note takes down in what a server's content differs from what it was until now.
func (f *former) note(server netip.AddrPort, was, is *observe.Mirror, now time.Time) {
	gone := map[rrset.Key]int64{}
	add := func(k rrset.Key) {
		if !rrset.Maintained(k.Type) {
			gone[k] = now.Add(syncstatus.Kept(was, k) + time.Second).Unix() // rounded up
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
	if len(gone) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep(now)
	f.keep(zoneOn{server, is.Zone}, gone)
}

// keep remembers RRsets of a zone on a server. f.mu is held.
func (f *former) keep(at zoneOn, gone map[rrset.Key]int64) {
	if f.until == nil {
		f.until = map[zoneOn]map[rrset.Key]int64{}
	}
	known := f.until[at]
	if known == nil {
		known = map[rrset.Key]int64{}
		f.until[at] = known
	}
	f.count -= len(known)
	for k, until := range gone {
		if last, again := known[k]; again || f.count+len(known) < formerMost {
			known[k] = max(last, until)
		}
	}
	f.count += len(known)
}

// sweep forgets what is over, now and then. f.mu is held.
func (f *former) sweep(now time.Time) {
	if now.Sub(f.swept) < time.Minute {
		return
	}
	f.swept, f.count = now, 0
	for at, known := range f.until {
		maps.DeleteFunc(known, func(_ rrset.Key, until int64) bool { return until <= now.Unix() })
		if f.count += len(known); len(known) == 0 {
			delete(f.until, at)
		}
	}
}

// of gives what is remembered of a zone's servers; nil when that is nothing.
func (f *former) of(zone string, servers []observe.Server) func(netip.AddrPort, rrset.Key) time.Time {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !slices.ContainsFunc(servers, func(s observe.Server) bool { return f.until[zoneOn{s.Addr, zone}] != nil }) {
		return nil
	}
	return func(server netip.AddrPort, k rrset.Key) time.Time { return f.keptUntil(server, zone, k) }
}

// keptUntil is until when resolvers may keep what a server held before at a name and type; zero when nothing is known.
func (f *former) keptUntil(server netip.AddrPort, zone string, k rrset.Key) time.Time {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if until, known := f.until[zoneOn{server, zone}][k]; known {
		return time.Unix(until, 0)
	}
	return time.Time{}
}
