package engine

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// doubtEvery is how often a zone is fetched completely from a server whose content looks wrong on the right serial.
const doubtEvery = 2 * time.Second

// verified remembers when a zone's content on a server was last due for being fetched completely: the same serial does
// not prove the same content, and incremental transfers build on what was fetched before.
type verified struct {
	mu    sync.Mutex
	of    map[zoneOn]verification
	swept time.Time
}

type zoneOn struct {
	server netip.AddrPort
	zone   string
}

type verification struct {
	at time.Time
	// doubted is set when the content looked wrong since.
	doubted bool
}

// due tells whether interval, or less for content in doubt, has passed since the last time it was due. The first time is
// never: nothing is mirrored yet. With an interval of 0 only content in doubt ever is.
func (v *verified) due(server netip.AddrPort, zone string, interval time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, key := time.Now(), zoneOn{server, zone}
	last, known := v.of[key]
	since := now.Sub(last.at)
	if known && !(interval > 0 && since >= interval) && !(last.doubted && since >= doubtEvery) {
		return false
	}
	v.sweep(now, 4*max(interval, time.Minute))
	if v.of == nil {
		v.of = map[zoneOn]verification{}
	}
	v.of[key] = verification{at: now}
	return known
}

// doubt notes that content looks wrong, and tells whether it is old enough for another look before that is believed.
func (v *verified) doubt(server netip.AddrPort, zone string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := zoneOn{server, zone}
	last, known := v.of[key]
	if !known {
		return false
	}
	last.doubted = true
	v.of[key] = last
	return time.Since(last.at) >= doubtEvery
}

// sweep forgets servers and zones that nobody asks about any more. v.mu is held.
func (v *verified) sweep(now time.Time, after time.Duration) {
	if now.Sub(v.swept) < after {
		return
	}
	v.swept = now
	maps.DeleteFunc(v.of, func(_ zoneOn, last verification) bool { return now.Sub(last.at) >= after })
}

// doubtful tells whether a row of a SyncStatus says that a server has other data of a zone than it should, on the right
// serial.
func doubtful(r *syncv1.ServerStatus, zone string) bool {
	wrong := r.State == syncv1.StateDivergent || r.State == syncv1.StateMissing
	return wrong && r.SerialLag != nil && *r.SerialLag == 0 && (r.Zone == "" || dns.Fqdn(r.Zone) == zone)
}

// doubts tells whether a view's servers have to be asked again before a SyncStatus is believed.
func (e *Engine) doubts(v *view, s *syncv1.SyncStatus) bool {
	again := false
	for i := range s.Servers {
		row := &s.Servers[i]
		if addr, err := netip.ParseAddrPort(row.Address); err == nil && doubtful(row, v.declared.ZoneName()) {
			again = e.verified.doubt(addr, v.declared.ZoneName()) || again
		}
	}
	return again
}
