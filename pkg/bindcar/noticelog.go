package bindcar

import (
	"container/list"
	"sync"
	"time"
)

// maxNotices bounds the memory of the log: some 20 MB with zone names of usual length.
const maxNotices = 1 << 16

// noticeLog keeps the latest notice of each zone, in the order in which they came. Any number of readers follow it, each
// at its own pace and with nothing but a position: a slow one costs no memory and holds up nobody.
type noticeLog struct {
	// limit is how many zones are kept.
	limit int

	mu sync.Mutex
	// order has entries, oldest first; zones leads to them by name.
	order *list.List
	zones map[string]*list.Element
	// last is the position of the newest entry, dropped that of the newest one that had to make room.
	last, dropped uint64
	// news is closed when an entry comes.
	news chan struct{}
}

type noticeEntry struct {
	Notice
	position uint64
}

func newNoticeLog(limit int) *noticeLog {
	return &noticeLog{limit: limit, order: list.New(), zones: map[string]*list.Element{}, news: make(chan struct{})}
}

// add puts a notice at the end, in place of an earlier one of the same zone.
func (l *noticeLog) add(n Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	if earlier, ok := l.zones[n.Zone]; ok {
		l.order.Remove(earlier)
	}
	l.zones[n.Zone] = l.order.PushBack(noticeEntry{n, l.last})
	if l.order.Len() > l.limit {
		oldest := l.order.Remove(l.order.Front()).(noticeEntry)
		delete(l.zones, oldest.Zone)
		l.dropped = oldest.position
	}
	close(l.news)
	l.news = make(chan struct{})
}

// end is the position after all that is there.
func (l *noticeLog) end() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// after gives what came since a position, oldest first, the position to go on from, and a channel that is closed when
// there is more. A reader who missed something that was dropped is told so by one notice in place of all.
func (l *noticeLog) after(position uint64) (notices []Notice, next uint64, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if position < l.dropped {
		return []Notice{{Lost: true, At: time.Now()}}, l.last, l.news
	}
	first := l.order.Back()
	for e := first; e != nil && e.Value.(noticeEntry).position > position; e = e.Prev() {
		first = e
	}
	for e := first; e != nil; e = e.Next() {
		if entry := e.Value.(noticeEntry); entry.position > position {
			notices = append(notices, entry.Notice)
		}
	}
	return notices, l.last, l.news
}
