package engine

import (
	"context"
	"maps"
	"slices"
	"time"
)

// EndWatches ends every watch, one after the other within the given time, so that their clients do not all come back in
// one moment. A client that takes bookmarks is told last up to when it has heard everything: with that revision, which is
// younger than any replica that takes over, it goes on elsewhere without listing again.
func (e *Engine) EndWatches(ctx context.Context, within time.Duration) {
	h := e.hub
	h.mu.Lock()
	subs := slices.Collect(maps.Keys(h.subs))
	h.mu.Unlock()
	for i, s := range subs {
		if i > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(within / time.Duration(len(subs))):
			}
		}
		h.end(s)
	}
}

// end queues a watch's last word.
func (h *hub) end(s *subscription) {
	h.delivering.Lock()
	defer h.delivering.Unlock()
	rev := h.engine.revisions.next()
	h.hear(s, rev)
	s.end(rev)
}

// end lets nothing follow what is queued but a bookmark of the revision, for a watch that takes bookmarks and has begun.
func (s *subscription) end(heard uint64) {
	s.mu.Lock()
	begun := len(s.initial) == 0
	s.mu.Unlock()
	if begun && s.bookmarks {
		s.bookmark(heard, false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	s.rouse()
}
