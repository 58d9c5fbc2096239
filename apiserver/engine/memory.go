package engine

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Bounds of what is remembered of deleted objects.
const (
	buriedFor  = 5 * time.Minute
	buriedMost = 20000
)

// memory remembers of each object's last SyncStatus what the next one cannot be computed without: at which revision
// the verdict was first seen, since when each condition holds, and until when caches may hold an older answer. About
// a hundred bytes for each object that was asked about.
type memory struct {
	revisions *revisions
	seed      maphash.Seed

	mu      sync.Mutex
	entries map[object]*entry
	buried  []*burial          // oldest first
	graves  map[object]*burial // the last of each object among buried
	// since is the revision from which on burials are known.
	since uint64
}

type entry struct {
	uid      types.UID
	digest   uint64
	revision uint64
	// told is the digest of what watches know, 0 when none was ever told; heard is the newest revision that those of this
	// object alone were handed.
	told, heard uint64
	// born is the first revision: nobody was told about the object before it.
	born       uint64
	conditions [3]since // by position: a SyncStatus has at most three, always in the same order
	expire     time.Time
	// held is for how long caches keep what a server had when it was last seen out of step; 0 when none is.
	held time.Duration
}

// since is a condition's status and when it began to hold.
type since struct {
	status metav1.ConditionStatus
	at     metav1.Time
}

// burial is the end of an object.
type burial struct {
	object
	revision uint64
	last     *syncv1.SyncStatus // name and labels only
	// told is set when no watch goes on from revision or later without knowing; heard is the entry's.
	told  bool
	heard uint64
}

func newMemory(r *revisions) *memory {
	return &memory{revisions: r, seed: maphash.MakeSeed(), entries: map[object]*entry{}, graves: map[object]*burial{}, since: r.current()}
}

// objectOf is the object that a SyncStatus is about, in the namespace where it is told: that of a cluster-scoped one is
// where its instances are.
func objectOf(s *syncv1.SyncStatus) object {
	return object{Kind: s.ObjectRef.Kind, Namespace: s.Namespace, Name: s.ObjectRef.Name}
}

// stamp completes a SyncStatus by what is remembered and remembers it. It returns its digest, and whether it differs
// from what was last seen of the object.
func (m *memory) stamp(s *syncv1.SyncStatus) (digest uint64, changed bool) {
	digest = m.digest(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	key := objectOf(s)
	e := m.entries[key]
	if e == nil || e.uid != s.UID {
		e = &entry{uid: s.UID}
		m.entries[key] = e
	}
	if changed = e.revision == 0 || e.digest != digest; changed {
		e.digest, e.revision = digest, m.revisions.next()
		e.born = cmp.Or(e.born, e.revision)
	}
	m.complete(s, e)
	s.ResourceVersion = formatRevision(e.revision)
	return digest, changed
}

// complete fills in what is remembered of an object. m.mu is held.
func (m *memory) complete(s *syncv1.SyncStatus, e *entry) {
	for i := range min(len(s.Status.Conditions), len(e.conditions)) {
		c := &s.Status.Conditions[i]
		if e.conditions[i].status != c.Status {
			e.conditions[i] = since{c.Status, c.LastTransitionTime}
		}
		c.LastTransitionTime = e.conditions[i].at
	}
	e.cached(s, m.revisions.now())
}

// cached fills in until when caches may hold an older answer. What a server was last seen to have may have been served
// until now.
func (e *entry) cached(s *syncv1.SyncStatus, now time.Time) {
	if served := now.Add(e.held); e.held > 0 && served.After(e.expire) {
		e.expire = served
	}
	if s.Status.InSync || len(s.Servers) == 0 {
		e.held = 0
	}
	if at := s.CachesExpireAt; at != nil {
		if at.After(e.expire) {
			e.expire = at.Time
		}
		if differs := func(r syncv1.ServerStatus) bool { return len(r.Observed) > 0 }; slices.ContainsFunc(s.Servers, differs) {
			e.held = max(e.held, at.Sub(s.ObservedAt.Time))
		}
	}
	s.CachesExpireAt = nil
	if e.expire.After(now) {
		s.CachesExpireAt = new(metav1.NewTime(e.expire))
	}
}

// again completes a SyncStatus that watchers have been told already, at the revision at which they were.
func (m *memory) again(s *syncv1.SyncStatus, rev uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[objectOf(s)]; e != nil && e.uid == s.UID {
		m.complete(s, e)
	}
	s.ResourceVersion = formatRevision(rev)
}

// tell notes that watches know what a SyncStatus of the digest says. It gets a new revision when some of them are told now,
// and when somebody else saw it first, at a revision not after one that a watch has heard: who goes on from there would
// never be told.
func (m *memory) tell(s *syncv1.SyncStatus, digest uint64, now bool, heard uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[objectOf(s)]
	seen, _ := parseRevision(s.ResourceVersion) // our own
	if now || e != nil && e.told != digest && seen <= max(heard, e.heard) {
		rev := m.revisions.next()
		s.ResourceVersion = formatRevision(rev)
		if e != nil {
			e.revision = rev
		}
	}
	if e != nil {
		e.told = digest
	}
}

// digestOf is what was last seen of an object; 0 when nothing was.
func (m *memory) digestOf(key object) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
		return e.digest
	}
	return 0
}

// hear takes down what a watch of this object alone is handed.
func (m *memory) hear(key object, rev uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
		e.heard = max(e.heard, rev)
	} else if b := m.graves[key]; b != nil {
		b.heard = max(b.heard, rev)
	}
}

// renew gives an object's revision, a new one when watches have heard of later ones.
func (m *memory) renew(key object, rev, heard uint64) uint64 {
	if rev > heard {
		return rev
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	rev = m.revisions.next()
	if e := m.entries[key]; e != nil {
		e.revision = rev
	}
	return rev
}

// toldBy tells whether anybody can have been told about an object at a revision of this replica.
func (m *memory) toldBy(key object, rev uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	return e != nil && e.born <= rev
}

// bury forgets a deleted object but for the fact that it is gone.
func (m *memory) bury(key object, o metav1.Object, last *syncv1.SyncStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last.Name, last.Namespace, last.Labels, last.UID = nameOf(key), key.Namespace, o.GetLabels(), o.GetUID()
	last.ObjectRef = syncv1.ObjectReference{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: o.GetUID()}
	b := &burial{object: key, revision: m.revisions.next(), last: last}
	if e := m.entries[key]; e != nil {
		b.heard = e.heard
		delete(m.entries, key)
	}
	last.ResourceVersion = formatRevision(b.revision)
	m.buried = append(m.buried, b)
	m.graves[key] = b
	for len(m.buried) > buriedMost || len(m.buried) > 0 && m.revisions.now().Sub(timeOf(m.buried[0].revision)) > buriedFor {
		oldest := m.buried[0]
		m.since = max(m.since, oldest.revision)
		m.buried = m.buried[1:]
		if m.graves[oldest.object] == oldest {
			delete(m.graves, oldest.object)
		}
		if e := m.entries[oldest.object]; e != nil && e.uid == oldest.last.UID {
			delete(m.entries, oldest.object) // Somebody was still computing it when it ended.
		}
	}
}

// tellEnd is tell for an object that is gone: it gives the revision of its end.
func (m *memory) tellEnd(key object, now bool, heard uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.graves[key]
	if b == nil {
		return m.revisions.next()
	}
	return m.tellBurial(b, now, heard)
}

// tellBurial is tellEnd. m.mu is held.
func (m *memory) tellBurial(b *burial, now bool, heard uint64) uint64 {
	if now || !b.told && b.revision <= max(heard, b.heard) {
		b.revision = m.revisions.next()
		b.last.ResourceVersion = formatRevision(b.revision)
	}
	b.told = true
	return b.revision
}

// settle does so for the objects of a namespace of which no watch is still to be told.
func (m *memory) settle(namespace string, heard uint64, awaited func(object) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.buried {
		if b.Namespace == namespace && !b.told && !awaited(b.object) {
			m.tellBurial(b, false, heard)
		}
	}
}

// gone lists the objects that ended after a revision.
func (m *memory) gone(after uint64) []burial {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []burial
	for _, b := range m.buried {
		if b.revision > after {
			out = append(out, *b)
		}
	}
	return out
}

// remembers tells whether all deletions since a revision are known.
func (m *memory) remembers(rev uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return rev >= m.since
}
