package store

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// entry is what the store holds of an object: some 200 bytes, and not the verdict itself, which can be evaluated again.
type entry struct {
	outline
	// born is the revision at which the first verdict about an object of this name was published.
	born uint64
	// previous is what was published before, for watches that go on from there; nil if nothing was.
	previous *outline
	digest   uint64
	// confirmed is the revision at which the last verdict was published, changed or not.
	confirmed  uint64
	conditions [len(conditionTypes)]conditionStatus // in the order of conditionTypes
	// cachesExpire is CachesExpireAt in Unix time, 0 when caches hold nothing older.
	cachesExpire int64
	// cacheTTL is for how long caches keep what a server had when it was last seen out of sync; 0 when none is.
	cacheTTL time.Duration
}

// conditionTypes are those that a SyncStatus can have.
var conditionTypes = [...]string{
	syncv1.ConditionAccepted, syncv1.ConditionProgrammed, syncv1.ConditionPropagated, syncv1.ConditionValidated, syncv1.ConditionAnswered,
	syncv1.ConditionDelegated, syncv1.ConditionReady,
}

// conditionStatus is a condition's status, by its first letter, and since when it has had it, in Unix time. The zero one is that of no condition.
type conditionStatus struct {
	status byte
	since  int64
}

// outline is what selectors and the event of an object's end need of a verdict.
type outline struct {
	revision           uint64
	uid                types.UID // of the object
	labels             map[string]string
	created            int64 // in Unix time
	generation         int64
	zone, failure      string
	phase              syncv1.Phase
	servers, inSync    int32
	unreachable        int32
	records, outOfSync int32
}

func outlineOf(s *syncv1.SyncStatus, revision uint64) outline {
	return outline{
		revision: revision, uid: s.ObjectRef.UID, labels: s.Labels, created: s.CreationTimestamp.Unix(), generation: s.Generation,
		zone: s.Zone, failure: s.Status.FailureReason, phase: s.Status.Phase, servers: s.Summary.Servers, inSync: s.Summary.InSync,
		unreachable: s.Summary.Unreachable, records: s.Summary.Records, outOfSync: s.Summary.RecordsOutOfSync,
	}
}

func (o *outline) status(key Key) *syncv1.SyncStatus {
	s := subject.Describe(key.Kind, key.Namespace, key.Name, o.uid, o.generation)
	s.Labels, s.CreationTimestamp, s.ResourceVersion = o.labels, metav1.Unix(o.created, 0), formatRevision(o.revision)
	s.Zone, s.Summary = o.zone, syncv1.Summary{
		Servers: o.servers, InSync: o.inSync, Unreachable: o.unreachable, Records: o.records, RecordsOutOfSync: o.outOfSync,
	}
	s.Status = syncv1.SyncStatusStatus{Phase: o.phase, InSync: o.phase == syncv1.PhaseInSync, FailureReason: o.failure}
	return s
}

func emptyStatus() *syncv1.SyncStatus {
	return &syncv1.SyncStatus{TypeMeta: metav1.TypeMeta{APIVersion: syncv1.SchemeGroupVersion.String(), Kind: "SyncStatus"}}
}

// complete adds to a verdict what follows from earlier ones, and remembers what the next one needs.
func (e *entry) complete(s *syncv1.SyncStatus, now time.Time) {
	were := e.conditions
	clear(e.conditions[:])
	for i := range s.Status.Conditions {
		c := &s.Status.Conditions[i]
		at := slices.Index(conditionTypes[:], c.Type)
		if e.conditions[at] = were[at]; were[at].status != c.Status[0] {
			e.conditions[at] = conditionStatus{c.Status[0], c.LastTransitionTime.Unix()}
		}
		c.LastTransitionTime = metav1.Unix(e.conditions[at].since, 0)
	}
	e.completeCaches(s, now)
	s.ResourceVersion = formatRevision(e.revision)
}

// completeCaches sets until when caches may hold an older answer. What a server was last seen to have may have been served
// until now.
func (e *entry) completeCaches(s *syncv1.SyncStatus, now time.Time) {
	if e.cacheTTL > 0 {
		e.cachesExpire = max(e.cachesExpire, now.Add(e.cacheTTL).Unix())
	}
	if s.Status.InSync || len(s.Servers) == 0 {
		e.cacheTTL = 0
	}
	if at := s.CachesExpireAt; at != nil {
		e.cachesExpire = max(e.cachesExpire, at.Unix())
		if differs := func(r syncv1.ServerStatus) bool { return len(r.Observed) > 0 }; slices.ContainsFunc(s.Servers, differs) {
			e.cacheTTL = max(e.cacheTTL, at.Sub(s.ObservedAt.Time))
		}
	}
	s.CachesExpireAt = nil
	if e.cachesExpire > now.Unix() {
		s.CachesExpireAt = new(metav1.Unix(e.cachesExpire, 0))
	}
}

// knownAt is what was published last at a revision; nil if that is not remembered.
func (e *entry) knownAt(rev uint64) *outline {
	switch {
	case e.revision <= rev:
		return &e.outline
	case e.previous != nil && e.previous.revision <= rev:
		return e.previous
	}
	return nil
}

// changedAfter is when the verdict of a revision was followed by another; the next revision if that is not remembered, or the object has
// ended.
func (e *entry) changedAfter(rev uint64) uint64 {
	if e != nil && e.previous != nil && e.previous.revision == rev {
		return e.revision
	}
	return rev + 1<<replicaBits
}

// successor is the entry of another object that has the name now. To clients it is the same one, changed.
func (e *entry) successor() *entry {
	if e == nil {
		return &entry{}
	}
	return &entry{born: e.born, previous: new(e.outline)}
}

// matchesSince matches the last verdict; since is since when the result has been so, as far as it is remembered.
func (e *entry) matchesSince(key Key, selector Selector) (matches bool, since uint64) {
	matches = selector.Matches(e.status(key))
	if e.previous != nil && selector.Matches(e.previous.status(key)) == matches {
		return matches, e.born
	}
	return matches, e.revision
}

// tombstone is the end of an object.
type tombstone struct {
	Key
	outline
	// last is the object's entry at its end.
	last entry
	// published is false when nobody can know of the object by this replica.
	published bool
}
