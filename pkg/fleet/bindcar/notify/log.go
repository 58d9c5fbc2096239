// Package notify receives the NOTIFY messages of the named beside the sidecar and streams them to the readers of
// GET /notices.
package notify

import (
	"container/list"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// MaxZones bounds the memory of a sidecar's log: some 20 MB with zone names of usual length.
const MaxZones = 1 << 16

// Log keeps the latest notification of each zone, in the order in which they came. Any number of readers follow it, each at
// its own pace and with nothing but a position: a slow one costs no memory and delays nobody.
type Log struct {
	maxZones int

	mu sync.Mutex
	// order has the entries, oldest first; zones finds them by name.
	order *list.List
	zones map[string]*list.Element
	// last is the position of the newest entry, dropped that of the newest one that had to make room.
	last, dropped uint64
	// added is closed when an entry comes.
	added chan struct{}
}

type logEntry struct {
	bindcar.Notification
	position uint64
}

// NewLog returns an empty log for so many zones.
func NewLog(maxZones int) *Log {
	return &Log{maxZones: maxZones, order: list.New(), zones: map[string]*list.Element{}, added: make(chan struct{})}
}

// Add appends a notification in place of an earlier one of the same zone.
func (l *Log) Add(n bindcar.Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	if earlier, ok := l.zones[n.Zone]; ok {
		l.order.Remove(earlier)
	}
	l.zones[n.Zone] = l.order.PushBack(logEntry{n, l.last})
	if l.order.Len() > l.maxZones {
		oldest := l.order.Remove(l.order.Front()).(logEntry)
		delete(l.zones, oldest.Zone)
		l.dropped = oldest.position
	}
	close(l.added)
	l.added = make(chan struct{})
}

// endPosition is the position after all entries.
func (l *Log) endPosition() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// readAfter lists what came after a position, oldest first, with the position to continue from, and a channel that is closed when there
// is more. A reader that missed dropped entries gets one notification with Lost set in place of all.
func (l *Log) readAfter(position uint64) (notices []bindcar.Notification, next uint64, added <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if position < l.dropped {
		return []bindcar.Notification{{Lost: true, At: time.Now()}}, l.last, l.added
	}
	first := l.order.Back()
	for e := first; e != nil && e.Value.(logEntry).position > position; e = e.Prev() {
		first = e
	}
	for e := first; e != nil; e = e.Next() {
		if entry := e.Value.(logEntry); entry.position > position {
			notices = append(notices, entry.Notification)
		}
	}
	return notices, l.last, l.added
}
