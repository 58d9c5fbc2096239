package refresh

import (
	"maps"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
)

// doubtInterval is how often a zone is transferred completely from a server whose content looks wrong on the right serial.
const doubtInterval = 2 * time.Second

// transferSchedule remembers when a zone's content on a server was last due for a complete transfer: the same serial does not
// prove the same content, and incremental transfers build on what was transferred before.
type transferSchedule struct {
	mu     sync.Mutex
	places map[evaluate.Place]scheduledTransfer
	swept  time.Time
}

type scheduledTransfer struct {
	at time.Time
	// doubted is set when the content has looked wrong since.
	doubted bool
}

// isDue reports whether interval, or less for content in doubt, has passed since the last time it was due. The first time is
// never: there is no mirror yet. With an interval of 0 only content in doubt ever is.
func (v *transferSchedule) isDue(place evaluate.Place, interval time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	last, known := v.places[place]
	since := now.Sub(last.at)
	if known && !(interval > 0 && since >= interval) && !(last.doubted && since >= doubtInterval) {
		return false
	}
	v.sweep(now, 4*max(interval, time.Minute))
	if v.places == nil {
		v.places = map[evaluate.Place]scheduledTransfer{}
	}
	v.places[place] = scheduledTransfer{at: now}
	return known
}

// doubt takes note that content looks wrong, and reports whether it is old enough for another look before that is believed.
func (v *transferSchedule) doubt(place evaluate.Place) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, known := v.places[place]
	if !known {
		return false
	}
	last.doubted = true
	v.places[place] = last
	return time.Since(last.at) >= doubtInterval
}

// sweep forgets servers and zones that nobody asks about any more. v.mu is held.
func (v *transferSchedule) sweep(now time.Time, after time.Duration) {
	if now.Sub(v.swept) < after {
		return
	}
	v.swept = now
	maps.DeleteFunc(v.places, func(_ evaluate.Place, last scheduledTransfer) bool { return now.Sub(last.at) >= after })
}
