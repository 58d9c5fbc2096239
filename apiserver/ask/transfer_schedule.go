package ask

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
)

// doubtInterval is how often a zone is transferred completely from a server whose content looks wrong on the right serial.
const doubtInterval = 2 * time.Second

// transferSchedule remembers when a zone's content on a server was last due for a complete transfer: the same serial does not
// prove the same content, and incremental transfers build on what was transferred before.
type transferSchedule struct {
	// interval between complete transfers; with 0 only content in doubt is ever due.
	interval time.Duration

	mu     sync.Mutex
	places *cache.Expiring
}

type scheduledTransfer struct {
	at time.Time
	// doubted is set when the content has looked wrong since.
	doubted bool
}

func (v *transferSchedule) keep(place evaluate.Place, last scheduledTransfer) {
	v.places.Set(place, last, 4*max(v.interval, time.Minute))
}

// isDue reports whether the interval, or less for content in doubt, has passed since the last time it was due. The first time is never:
// there is no mirror yet.
func (v *transferSchedule) isDue(place evaluate.Place) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	entry, known := v.places.Get(place)
	if known {
		last := entry.(scheduledTransfer)
		since := time.Since(last.at)
		if !(v.interval > 0 && since >= v.interval) && !(last.doubted && since >= doubtInterval) {
			return false
		}
	}
	v.keep(place, scheduledTransfer{at: time.Now()})
	return known
}

// doubtContent notes that content looks wrong, and reports whether it is old enough for another look before that is believed.
func (v *transferSchedule) doubtContent(place evaluate.Place) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	entry, known := v.places.Get(place)
	if !known {
		return false
	}
	at := entry.(scheduledTransfer).at
	v.keep(place, scheduledTransfer{at: at, doubted: true})
	return time.Since(at) >= doubtInterval
}

// isTransferredSince reports whether a complete transfer was due after a time.
func (v *transferSchedule) isTransferredSince(place evaluate.Place, t time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	entry, known := v.places.Get(place)
	return known && entry.(scheduledTransfer).at.After(t)
}

// DoubtContent notes that a server's content looks wrong, and reports whether it is old enough for another look before that is believed.
func (a *Asker) DoubtContent(place evaluate.Place) bool { return a.schedule.doubtContent(place) }
