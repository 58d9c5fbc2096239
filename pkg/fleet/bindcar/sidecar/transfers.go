package sidecar

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/statistics"
)

const (
	// stillness is how long a transfer may bring nothing before it counts as stuck.
	stillness = 2 * time.Second
	// transferListAge is how long a list of transfers is used: that of ten thousand zones has megabytes.
	transferListAge = time.Second
)

// transferWatch tells which transfers are stuck, by the two last lists of them. It is safe for concurrent use.
type transferWatch struct {
	list  func(context.Context) ([]statistics.Transfer, error)
	group singleflight.Group

	mu           sync.Mutex
	last, former transferList
}

// transferList has the transfers that were under way at a time, by zone.
type transferList struct {
	at    time.Time
	zones map[string]statistics.Transfer
}

// isStuck reports whether a transfer of a zone is under way that has brought nothing for stillness. Of a named that does not list its
// transfers, none is known to be.
func (w *transferWatch) isStuck(ctx context.Context, zone string) bool {
	_, _, _ = w.group.Do("", func() (any, error) {
		if last, _ := w.lists(); time.Since(last.at) >= transferListAge {
			transfers, _ := w.list(context.WithoutCancel(ctx))
			w.add(newTransferList(transfers))
		}
		return nil, nil
	})
	last, former := w.lists()
	return last.showsStuck(zone, former)
}

func (w *transferWatch) lists() (last, former transferList) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.former
}

// add makes a list the last one. The former one is kept until it is old enough to compare with.
func (w *transferWatch) add(l transferList) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.at.Sub(w.former.at) >= 2*stillness {
		w.former = w.last
	}
	w.last = l
}

func newTransferList(transfers []statistics.Transfer) transferList {
	l := transferList{time.Now(), make(map[string]statistics.Transfer, len(transfers))}
	for _, t := range transfers {
		if t.Seconds > 0 {
			l.zones[t.Zone] = t
		}
	}
	return l
}

// showsStuck reports whether the transfer of a zone had brought nothing at all after stillness, or nothing since a former list.
func (l transferList) showsStuck(zone string, former transferList) bool {
	now := l.zones[zone]
	before, known := former.zones[zone]
	age, apart := time.Duration(now.Seconds)*time.Second, l.at.Sub(former.at)
	switch {
	case now.Bytes == 0:
		return age >= stillness
	case known && age >= apart:
		return before.Bytes == now.Bytes && apart >= stillness
	default:
		return false
	}
}
