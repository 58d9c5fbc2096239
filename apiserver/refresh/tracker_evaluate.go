package refresh

import (
	"iter"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// To notify a thousand watchers takes longer than a change takes to reach all servers: notified of every step, they would
// learn of the end last. So the more watchers there are, the longer a verdict waits that only says that a change is on its
// way; most changes have arrived by then. That all of a zone is in sync, which sums up its objects, waits as long, for these
// to go first. What has arrived or gone wrong is published at once, and for a few watchers everything is.
const (
	// debouncePerWatcher is about what one more watcher adds to the time that it takes to notify all, kube-apiserver's part
	// included.
	debouncePerWatcher = 50 * time.Microsecond
	// minDebounce is the shortest time that is worth waiting, maxDebounce the longest.
	minDebounce, maxDebounce = 5 * time.Millisecond, 50 * time.Millisecond
)

// debounceTime is how long a verdict waits that says that a change is on its way. Watches of a single object do not count: however many
// they are, few are notified of each change. A watch that is about to begin is to begin with the present: nothing waits then.
func (t *tracker) debounceTime() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.joining) > 0 {
		return 0
	}
	watchers := 0
	for in := range t.interests {
		if in.scope.Object == (desired.Key{}) {
			watchers++
		}
	}
	if d := time.Duration(watchers) * debouncePerWatcher; d >= minDebounce {
		return min(d, maxDebounce)
	}
	return 0
}

// isDebounced delays a verdict that has to wait: the object is evaluated again then.
func (t *tracker) isDebounced(o *trackedObject, s *syncv1.SyncStatus, wait time.Duration) bool {
	isSummary := o.key.Kind == subject.ZoneKind.Kind && s.Status.InSync
	if wait == 0 || s.Status.Phase != syncv1.PhasePropagating && !isSummary || !o.published {
		return false
	}
	if t.refresher.publisher.IsPublished(o.key, t.refresher.publisher.Digest(s)) {
		return false
	}
	if t.publishAt.IsZero() {
		t.publishAt = time.Now().Add(wait)
		time.AfterFunc(wait, func() { wake(t.woken) })
	}
	return true
}

// endDebounce has everything evaluated again that was debounced, when it has waited long enough or need not any more. It
// returns how long what is evaluated now has to wait.
func (t *tracker) endDebounce() time.Duration {
	wait := t.debounceTime()
	if t.publishAt.IsZero() || wait > 0 && time.Now().Before(t.publishAt) {
		return wait
	}
	t.publishAt = time.Time{}
	for _, w := range t.zones {
		if len(w.suspects) > 0 {
			w.evaluated = false
			t.dirty[w] = struct{}{}
		}
	}
	return 0
}

// evaluateDirty evaluates what may have changed. A zone is first evaluated when all its servers have answered or were waited for long
// enough. While answers to a new declaration are awaited, only verdicts are published that
// objects are on their way: that they are not programmed yet needs no answer, anything else does. Of what is debounced the
// zone keeps the suspicion.
func (t *tracker) evaluateDirty() {
	wait := t.endDebounce()
	if len(t.dirty) == 0 {
		return
	}
	t.beginRound()
	for w := range t.dirty {
		if w.isAnswered() && !(w.isHeld() && w.evaluated) {
			t.evaluateZone(w, wait)
		}
	}
}

// beginRound makes each zone be judged anew, by answers that are not older than the revision.
func (t *tracker) beginRound() {
	t.round++
	t.evaluatedFrom = t.refresher.publisher.Revision()
}

func (t *tracker) evaluateZone(w *trackedZone, wait time.Duration) {
	held := w.isHeld()
	suspects, debounced := w.suspects, []desired.Key(nil)
	if w.all {
		suspects = w.members
	}
	for key := range zoneLast(w, suspects) {
		if t.evaluateObject(w, t.objects[key], wait, held) {
			debounced = append(debounced, key)
		}
	}
	if w.evaluated = true; !held {
		w.all = false
		clear(w.suspects)
		delete(t.dirty, w)
		for _, key := range debounced {
			w.suspect(key)
		}
	}
	t.confirmFindings(w)
}

// zoneLast puts a zone behind its objects, for which it waits.
func zoneLast(w *trackedZone, suspects map[desired.Key]struct{}) iter.Seq[desired.Key] {
	return func(yield func(desired.Key) bool) {
		self := desired.KeyOf(w.key)
		for key := range suspects {
			if key != self && !yield(key) {
				return
			}
		}
		if _, among := suspects[self]; among {
			yield(self)
		}
	}
}

// evaluateObject evaluates one member of a zone, and publishes the verdict unless it has to wait. It reports whether the
// verdict is debounced.
func (t *tracker) evaluateObject(w *trackedZone, o *trackedObject, wait time.Duration, held bool) (debounced bool) {
	subject, v := t.evaluateTracked(o)
	switch {
	case v == nil || held && v.Status.Phase != syncv1.PhasePropagating:
		return false
	case t.needsConfirmation(w, o, subject, v):
		return false
	case t.isDebounced(o, v, wait):
		return true
	}
	t.publishVerdict(o, v)
	return false
}

// evaluateTracked judges an object by the newest answers; nil while the tracker does not follow its zones as they are now.
func (t *tracker) evaluateTracked(o *trackedObject) (*desired.Subject, *syncv1.SyncStatus) {
	s, exists := t.refresher.index.Resolve(o.key)
	if !exists {
		return nil, nil // An event of that is to come.
	}
	for _, z := range s.Zones {
		w := t.zones[z.Key]
		if w == nil || w.zone != z {
			t.touchObject(o.key)
			return nil, nil
		}
		if w.round != t.round {
			w.round, w.judged = t.round, t.refresher.evaluator.Judge(z, time.Time{}, false)
		}
	}
	return &s, t.refresher.evaluator.Status(&s, func(i int) *syncstatus.Evaluation { return t.zones[s.ZoneKeys[i]].judged })
}

// publishVerdict publishes a verdict. One that is outdated is evaluated again.
func (t *tracker) publishVerdict(o *trackedObject, v *syncv1.SyncStatus) {
	if len(t.refresher.publisher.Publish(t.evaluatedFrom, v)) > 0 {
		t.touchObject(o.key)
		return
	}
	if o.published = true; !t.refresher.publisher.IsPublished(o.key, o.confirmed) {
		o.confirmed = 0
	}
	for _, zone := range o.zones {
		if w := t.zones[zone]; w == nil {
			continue
		} else if v.Status.InSync {
			delete(w.outOfSync, o.key)
		} else {
			w.outOfSync[o.key] = struct{}{}
		}
	}
}

// publishAlone evaluates and publishes an object without zones.
func (t *tracker) publishAlone(o *trackedObject) {
	t.beginRound()
	if _, v := t.evaluateTracked(o); v != nil {
		t.publishVerdict(o, v)
	}
}

// needsConfirmation reports whether a verdict by which data is wrong waits for another look at it.
func (t *tracker) needsConfirmation(w *trackedZone, o *trackedObject, s *desired.Subject, v *syncv1.SyncStatus) bool {
	f, _ := t.refresher.findingOf(s, v)
	if len(f.disputed) == 0 || f.digest == o.confirmed { // It has been published, or data is not wrong, or was looked at.
		return false
	}
	w.unconfirmed[o.key] = f
	return true
}

// confirmFindings checks wrong data again, of a limited number of objects at a time; handleConfirmed follows.
func (t *tracker) confirmFindings(w *trackedZone) {
	if w.confirming || len(w.unconfirmed) == 0 {
		return
	}
	w.confirming = true
	var found []finding
	for key, f := range w.unconfirmed {
		if len(found) < concurrentReads {
			found = append(found, f)
			delete(w.unconfirmed, key)
		}
	}
	t.inBackground(func() func() {
		t.refresher.confirm(t.ctx, found)
		return func() { t.handleConfirmed(w, found) }
	})
}

// handleConfirmed has the members evaluated again that waited.
func (t *tracker) handleConfirmed(w *trackedZone, confirmed []finding) {
	w.confirming = false
	for _, f := range confirmed {
		if o := t.objects[f.key]; o != nil {
			o.confirmed = f.digest
		}
		w.suspect(f.key)
	}
	if t.zones[w.key] == w {
		t.takeAnswers()
		t.evaluateLater(w)
		t.confirmFindings(w)
	}
}
