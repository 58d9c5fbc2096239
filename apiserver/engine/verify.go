package engine

import (
	"net/netip"
	"sync"
	"time"
)

// verified remembers when a zone's content on a server was last due for being fetched completely: the same serial does
// not prove the same content, and incremental transfers build on what was fetched before.
type verified struct {
	mu    sync.Mutex
	at    map[zoneOn]time.Time
	swept time.Time
}

type zoneOn struct {
	server netip.AddrPort
	zone   string
}

// due tells whether interval has passed since the last time it was due. The first time is never: nothing is mirrored
// yet. An interval of 0 switches it off.
func (v *verified) due(server netip.AddrPort, zone string, interval time.Duration) bool {
	if interval <= 0 {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.at == nil || now.Sub(v.swept) > 4*interval {
		v.sweep(now, 4*interval)
	}
	key := zoneOn{server, zone}
	last, known := v.at[key]
	if known && now.Sub(last) < interval {
		return false
	}
	v.at[key] = now
	return known
}

// sweep forgets servers and zones that nobody asks about any more.
func (v *verified) sweep(now time.Time, after time.Duration) {
	kept := map[zoneOn]time.Time{}
	for k, at := range v.at {
		if now.Sub(at) < after {
			kept[k] = at
		}
	}
	v.at, v.swept = kept, now
}
