package engine

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// told is what watchers were last told of an object, as far as selectors and the news of its end need it: the whole of
// it is computed again for those who come later.
type told struct {
	digest, revision uint64
	uid              types.UID
	labels           map[string]string
	created          metav1.Time
	generation       int64
	zone, failure    string
	phase            syncv1.Phase
	summary          syncv1.Summary
}

// status is what was told.
func (k *known) status() *syncv1.SyncStatus {
	s := blank()
	s.Name, s.Namespace, s.UID, s.Labels = nameOf(k.key), k.key.Namespace, k.uid, k.labels
	s.CreationTimestamp, s.Generation, s.ResourceVersion = k.created, k.generation, formatRevision(k.revision)
	s.ObjectRef = syncv1.ObjectReference{
		Kind: k.key.Kind, Namespace: k.key.Namespace, Name: k.key.Name, UID: k.uid, Generation: k.generation,
	}
	s.Zone, s.Summary = k.zone, k.summary
	s.Status = syncv1.SyncStatusStatus{Phase: k.phase, InSync: k.phase == syncv1.PhaseInSync, FailureReason: k.failure}
	return s
}

func (k *known) remember(s *syncv1.SyncStatus, digest uint64) {
	rev, _ := parseRevision(s.ResourceVersion) // our own
	k.isTold, k.told = true, told{
		digest: digest, revision: rev, uid: s.UID, labels: s.Labels, created: s.CreationTimestamp, generation: s.Generation,
		zone: s.Zone, failure: s.Status.FailureReason, phase: s.Status.Phase, summary: s.Summary,
	}
}

// judge computes what has changed. A zone is first judged when all its servers have been heard, or when a new watcher has
// waited for them long enough. While answers to a new declaration are awaited, it is told of objects only that they are on
// their way: that they are not programmed yet needs no answer, anything else does. Of what is put off its zone keeps the
// suspicion.
func (t *tracker) judge() {
	wait := t.recall()
	if len(t.dirty) == 0 {
		return
	}
	late := t.impatient()
	var now []*watched
	for w := range t.dirty {
		if (w.settled() || late) && !(w.holding() && w.told) {
			w.judged = t.engine.judged(w.view, w.answers)
			now = append(now, w)
		}
	}
	for _, w := range now {
		holding := w.holding()
		suspects, early := w.suspects, []object(nil)
		if w.all {
			suspects = w.members
		}
		for key := range zoneLast(w, suspects) {
			k := t.known[key]
			s := t.statusOf(k)
			switch {
			case s == nil || holding && s.Status.Phase != syncv1.PhasePropagating:
			case t.verify(w, k, s):
				w.unverified[key] = struct{}{}
			case t.putOff(k, s, wait):
				early = append(early, key)
			default:
				t.tell(k, s)
			}
		}
		if w.told = true; !holding {
			w.all = false
			clear(w.suspects)
			delete(t.dirty, w)
			for _, key := range early {
				w.suspect(key)
			}
		}
	}
}

// zoneLast puts a zone behind its objects, for which it waits.
func zoneLast(w *watched, suspects map[object]struct{}) iter.Seq[object] {
	return func(yield func(object) bool) {
		self := zoneObject(w.key)
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

// statusOf is an object's SyncStatus by the last judgements; nil while one of its zones has none, or knows nothing of it.
func (t *tracker) statusOf(k *known) *syncv1.SyncStatus {
	for _, zone := range k.zones {
		if w := t.zones[zone]; w == nil || w.judged == nil {
			return nil
		}
	}
	return t.engine.statusOf(k.subject, func(i int) *syncstatus.Judgement { return t.zones[k.zones[i]].judged })
}

// tell compares a fresh SyncStatus with what watchers know, and delivers it when it is news.
func (t *tracker) tell(k *known, s *syncv1.SyncStatus) {
	if s == nil {
		return
	}
	digest, changed := t.engine.memory.stamp(s)
	var was *syncv1.SyncStatus
	if k.isTold {
		was = k.status()
	}
	if was == nil || k.digest != digest || changed {
		t.engine.hub.deliver(t.joined(), was, s, digest)
	}
	k.remember(s, digest)
	for _, zone := range k.zones {
		if w := t.zones[zone]; w == nil {
			continue
		} else if s.Status.InSync {
			delete(w.off, k.key)
		} else {
			w.off[k.key] = struct{}{}
		}
	}
}

// end tells that an object is gone, or forgets one that nobody asks about any more.
func (t *tracker) end(key object) {
	k := t.known[key]
	if k == nil {
		return
	}
	delete(t.known, key)
	for _, zone := range k.zones {
		t.leave(zone, key)
	}
	if k.isTold && !t.engine.exists(key) {
		t.engine.hub.deliver(t.joined(), k.status(), nil, 0)
	}
}

// begin queues a watcher's initial events. t.mu is held.
func (t *tracker) begin(s *subscription) {
	h := t.engine.hub
	h.delivering.Lock()
	defer h.delivering.Unlock()
	heard := h.heard.of(t.namespace)
	t.engine.memory.settle(t.namespace, heard, t.tells)
	var news []object
	for key, k := range t.known {
		if k.isTold && (s.synthetic || k.revision > s.from) {
			news = append(news, key)
		}
	}
	slices.SortFunc(news, compareObjects)
	for _, key := range news {
		k := t.known[key]
		if !s.begins(t.namespace) {
			k.revision = t.engine.memory.renew(key, k.revision, heard)
		}
		t.beginWith(s, k)
		h.hear(s, k.revision)
	}
	if !s.synthetic {
		for _, b := range t.engine.memory.gone(s.from) {
			if b.Namespace == t.namespace && !t.tells(b.object) && !t.engine.exists(b.object) && s.query.matches(b.last) {
				s.push(watch.Deleted, share(b.last))
				h.hear(s, b.revision)
			}
		}
	}
	if s.initialDone(t.namespace) {
		h.begun(s)
	}
}

// tells is true for an object whose end watchers will be told of, once the tracker looks.
func (t *tracker) tells(key object) bool {
	k := t.known[key]
	return k != nil && k.isTold
}

func (t *tracker) beginWith(s *subscription, k *known) {
	last := k.status()
	matches := s.query.matches(last)
	switch {
	case s.synthetic && matches:
		t.pushAgain(s, watch.Added, k)
	case s.synthetic:
	case matches && k.created.After(timeOf(s.from)):
		t.pushAgain(s, watch.Added, k)
	case matches:
		t.pushAgain(s, watch.Modified, k)
	case s.query.mayHaveMatched(last) && (s.foreign || t.engine.memory.toldBy(k.key, s.from)):
		s.push(watch.Deleted, share(last))
	}
}

// pushAgain queues what was told of an object. When something else is about to be told, it is only outlined.
func (t *tracker) pushAgain(s *subscription, kind watch.EventType, k *known) {
	o := t.statusOf(k)
	if o == nil || t.engine.memory.digest(o) != k.digest {
		k.digest = 0 // Whatever comes next is news.
		s.push(kind, share(k.status()))
		return
	}
	t.engine.memory.again(o, k.revision)
	s.push(kind, share(o))
}
