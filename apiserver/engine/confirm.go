package engine

import (
	"context"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// confirmMost is how many objects a tracker reads past the caches at a time. More that seem to be out of step are told of as
// the caches have them.
const confirmMost = 32

// confirm tells whether it is awaited how an object is declared now, of which servers were found to hold other data at a time:
// they may know of a change before our caches do. Each answer is worth one look. A zone waits for its objects.
func (t *tracker) confirm(k *known, found time.Time) (awaited bool) {
	if _, underWay := t.confirming[k.key]; underWay {
		return true
	}
	kind, _, _ := syncstatus.ParseName(nameOf(k.key))
	switch {
	case kind == syncstatus.ZoneKind:
		return len(t.confirming) > 0
	case !k.confirmed.Before(found), len(t.confirming) >= confirmMost:
		return false
	}
	t.confirming[k.key] = struct{}{}
	key, began := k.key, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(t.ctx, t.engine.options.Deadline)
		defer cancel()
		// Without an answer the caches are believed.
		_ = t.engine.freshen(ctx, kind, key)
		t.mu.Lock()
		t.touched[key], t.confirmed[key] = struct{}{}, began
		t.mu.Unlock()
		t.wake()
	}()
	return true
}

// takeConfirmed has what waited for objects judged again.
func (t *tracker) takeConfirmed(at map[object]time.Time) {
	if len(at) == 0 {
		return
	}
	for key, began := range at {
		delete(t.confirming, key)
		if k := t.known[key]; k != nil {
			k.confirmed = began
		}
	}
	for _, w := range t.zones {
		w.release()
		t.judgeLater(w)
	}
}
