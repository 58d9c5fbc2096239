package refresh

import (
	"iter"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// To notify a thousand watchers takes longer than a change takes to reach all servers: notified of every step, they would
// learn of the end last. So the more watchers there are, the longer a verdict waits that only says that a change is on its
// way; most changes have arrived by then. That all of a zone is in sync, which sums up its objects, goes with the verdicts of
// these: to send two at once costs little more than to send one. Without any it waits as long. What has arrived or gone wrong
// is published at once, and for a few watchers everything is.
const (
	// debouncePerWatcher is about what one more watcher adds to the time that it takes to notify all, kube-apiserver's part
	// included.
	debouncePerWatcher = 50 * time.Microsecond
	// minDebounce is the shortest time that is worth waiting, maxDebounce the longest.
	minDebounce, maxDebounce = 5 * time.Millisecond, 50 * time.Millisecond
	// maxTogether is how many verdicts are published in one step, so that a large zone's need no memory all at once.
	maxTogether = 64
)

// debounceTime returns how long a verdict waits that says that a change is on its way. Watches of a single object do not
// count: however many they are, few are notified of each change. A watch that is about to begin is to begin with the present:
// nothing waits then.
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

// isDebounced reports whether a verdict has to wait, unless others of its zone are news: the object is evaluated again then.
func (t *tracker) isDebounced(p pendingVerdict, wait time.Duration, others bool) bool {
	isSummary := p.of.key.Kind == syncstatus.ZoneKind.Kind && p.verdict.Status.InSync && !others
	if wait == 0 || p.verdict.Status.Phase != syncv1.PhasePropagating && !isSummary || !p.of.published || !t.isNews(p) {
		return false
	}
	if t.publishAt.IsZero() {
		t.publishAt = time.Now().Add(wait)
		time.AfterFunc(wait, func() { wake(t.woken) })
	}
	return true
}

// isNews reports whether the verdict is another one than was published last.
func (t *tracker) isNews(p pendingVerdict) bool {
	return !t.refresher.publisher.IsPublished(p.of.key, t.refresher.publisher.Digest(p.verdict))
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

// evaluateDirty evaluates what may have changed. A zone is first evaluated when all its servers have answered, or when a new
// watcher has waited for them long enough. While answers to a new declaration are awaited, only verdicts are published that
// objects are on their way: that they are not programmed yet needs no answer, anything else does. Of what is debounced the
// zone keeps the suspicion.
func (t *tracker) evaluateDirty(now time.Time) {
	wait := t.endDebounce()
	if len(t.dirty) == 0 {
		return
	}
	late := t.isLate(now)
	t.beginRound()
	for w := range t.dirty {
		if (w.isAnswered() || late) && !(w.isHeld() && w.evaluated) {
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
	var ready []pendingVerdict
	news := false // only many watchers make it matter
	for key := range zoneLast(w, suspects) {
		p := pendingVerdict{of: t.objects[key]}
		if p.verdict = t.evaluateMember(w, p.of, held); p.verdict == nil {
			continue
		}
		if t.isDebounced(p, wait, news) {
			debounced = append(debounced, key)
			continue
		}
		news = news || wait > 0 && t.isNews(p)
		if ready = append(ready, p); len(ready) == maxTogether {
			t.publishVerdicts(ready...)
			ready = ready[:0]
		}
	}
	t.publishVerdicts(ready...)
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

// zoneLast puts a zone behind its objects, with which it goes.
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

// pendingVerdict is a verdict that is to be published.
type pendingVerdict struct {
	of      *trackedObject
	verdict *syncv1.SyncStatus
}

// evaluateMember returns the verdict of one member of a zone; nil if nothing can be said at the moment.
func (t *tracker) evaluateMember(w *trackedZone, o *trackedObject, held bool) *syncv1.SyncStatus {
	subject, v := t.evaluateTracked(o)
	if v == nil || held && v.Status.Phase != syncv1.PhasePropagating || t.needsConfirmation(w, o, subject, v) {
		return nil
	}
	return v
}

// evaluateTracked returns the verdict of an object by the newest answers; nil while the tracker does not follow its zones as
// they are now.
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
			w.round, w.judged = t.round, t.refresher.evaluator.Judge(z, time.Time{})
		}
	}
	return &s, t.refresher.evaluator.Status(&s, func(i int) *syncstatus.Evaluation { return t.zones[s.ZoneKeys[i]].judged })
}

// publishVerdicts publishes verdicts in one step. What is outdated is evaluated again.
func (t *tracker) publishVerdicts(all ...pendingVerdict) {
	verdicts := make([]*syncv1.SyncStatus, len(all))
	for i, p := range all {
		verdicts[i] = p.verdict
	}
	outdated := t.refresher.publisher.Publish(t.evaluatedFrom, verdicts...)
	for i, p := range all {
		if slices.Contains(outdated, i) {
			t.touchObject(p.of.key)
		} else {
			t.notePublished(p)
		}
	}
}

func (t *tracker) notePublished(p pendingVerdict) {
	o := p.of
	if o.published = true; !t.refresher.publisher.IsPublished(o.key, o.confirmed) {
		o.confirmed = 0
	}
	for _, zone := range o.zones {
		if w := t.zones[zone]; w == nil {
			continue
		} else if p.verdict.Status.InSync {
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
		t.publishVerdicts(pendingVerdict{o, v})
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

// confirmFindings takes another look at wrong data, of so many objects at a time; handleConfirmed follows.
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
