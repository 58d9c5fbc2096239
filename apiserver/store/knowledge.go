package store

import (
	"math"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// knowledge is what there was at a revision, which a client knows that goes on from there.
type knowledge struct {
	store *Store
	at    uint64
	// ended are the last entries of what existed then and has ended since.
	ended map[Key]*entry
}

// knowledgeAt is what there was at a revision that is not older than s.oldest. s.mu is held for as long as it is used.
func (s *Store) knowledgeAt(rev uint64) knowledge {
	k := knowledge{store: s, at: rev, ended: map[Key]*entry{}}
	for t := range s.deletedSince(rev) {
		if t.published && t.last.born <= rev {
			k.ended[t.Key] = &t.last
		}
	}
	return k
}

// of is what was published last of an object, if any was; nil if it is not remembered.
func (k knowledge) of(key Key) (o *outline, existed bool) {
	e := k.store.namespaces[key.Namespace][key]
	if e == nil || e.born > k.at {
		e = k.ended[key]
	}
	if e == nil {
		return nil, false
	}
	return e.knownAt(k.at), true
}

// ListRevision is a resourceVersion for a list: a watch that goes on from there misses nothing. evaluatedFrom is the Revision at which
// the list began; verdicts are all that were published for it, of which it has those that match. Unless something else has changed since,
// the revision is the present one, and the watch repeats nothing that is in the list either. It is exact if what there was at it is what
// the list has: otherwise the watch adds what the client knows, or deletes what it does not know. With paged other pages follow, which
// have the same resourceVersion.
func (s *Store) ListRevision(evaluatedFrom uint64, scope Scope, selector Selector, verdicts []*syncv1.SyncStatus, paged bool) (rev string, exact bool) {
	at, exact := s.listRevision(evaluatedFrom, scope, selector, verdicts)
	if paged || !exact {
		at |= inexact
	}
	return formatRevision(at), exact
}

func (s *Store) listRevision(evaluatedFrom uint64, scope Scope, selector Selector, verdicts []*syncv1.SyncStatus) (rev uint64, exact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOnlyNews(evaluatedFrom, scope, verdicts) {
		return s.clock.currentRevision(), true
	}
	switch least, before := s.boundsOf(evaluatedFrom, scope, selector, verdicts); {
	case before == math.MaxUint64:
		return s.clock.currentRevision(), true
	case least > evaluatedFrom && least < before:
		return before - 1<<replicaBits, true
	default:
		return evaluatedFrom, least <= evaluatedFrom
	}
}

// isOnlyNews reports whether nothing has changed in a scope since a revision but by some verdicts. s.mu is held.
func (s *Store) isOnlyNews(since uint64, scope Scope, verdicts []*syncv1.SyncStatus) bool {
	news := 0
	for _, v := range verdicts {
		key := KeyOf(v)
		e := s.namespaces[key.Namespace][key]
		if e == nil || formatRevision(e.revision) != v.ResourceVersion {
			return false
		}
		if e.revision > since {
			news++
		}
	}
	for _, e := range s.entriesIn(scope) {
		if e.revision > since {
			news--
		}
	}
	for t := range s.deletedSince(since) {
		if scope.coversObject(t.Key) {
			news--
		}
	}
	return news == 0
}

// boundsOf are the revisions between which there was what a list has: from least on, and before the other, which is the highest number if
// that is so still. s.mu is held.
func (s *Store) boundsOf(evaluatedFrom uint64, scope Scope, selector Selector, verdicts []*syncv1.SyncStatus) (least, before uint64) {
	before = math.MaxUint64
	listed := make(map[Key]bool, len(verdicts))
	for _, v := range verdicts {
		key := KeyOf(v)
		listed[key] = true
		has, _ := parseRevision(v.ResourceVersion) // our own
		if e := s.namespaces[key.Namespace][key]; e != nil && e.revision == has {
			_, since := e.matchesSince(key, selector)
			least = max(least, since)
		} else { // It has changed or ended.
			least, before = max(least, has), min(before, e.changedAfter(has))
		}
	}
	for key, e := range s.entriesIn(scope) {
		if e.revision <= evaluatedFrom || listed[key] {
			continue
		}
		if matches, since := e.matchesSince(key, selector); matches {
			before = min(before, max(since, evaluatedFrom+1<<replicaBits))
		} else {
			least = max(least, since)
		}
	}
	for t := range s.deletedSince(evaluatedFrom) {
		if t.published && scope.coversObject(t.Key) && !listed[t.Key] && selector.Matches(t.status(t.Key)) {
			least = max(least, t.revision)
		}
	}
	return least, before
}
