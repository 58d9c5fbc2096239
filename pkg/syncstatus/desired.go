package syncstatus

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// Problem is why a declaration is not part of what its zone serves.
type Problem struct{ Reason, Message string }

// DesiredState is the desired state of one zone. It is immutable and safe for concurrent use.
type DesiredState struct {
	zone    *v1beta1.DNSZone
	desired *source.Zone // nil if the zone cannot be read
	problem *Problem
	// pending holds the RRsets that the controller still has to update or delete, each with the objects that cause it.
	pending pending
	// objects are those with a role in the zone.
	objects snapshot.Map[source.ObjectKey, source.Object]
	// compared is shared by all DesiredStates of one DesiredCache.
	compared *comparisonCache
}

type pending = snapshot.Map[rrset.Key, []source.ObjectKey]

var seed = maphash.MakeSeed()

func hashByObject(o source.ObjectKey) uint64 { return maphash.Comparable(seed, o) }

func hashByName(k rrset.Key) uint64 { return snapshot.String(k.Name) }

// NewDesiredState returns the desired state of a zone from scratch. desired was built from the objects that are not being deleted;
// objects are all with a role in the zone, including those being deleted. With a problem nothing of the zone is served, and desired may
// be nil.
func NewDesiredState(zone *v1beta1.DNSZone, desired *source.Zone, objects []source.Object, problem *Problem) *DesiredState {
	return NewDesiredCache().Update(zone, desired, problem, func(yield func(membership.Member) bool) {
		for _, o := range objects {
			m := membership.Member{Key: source.KeyOf(o), Object: o, Role: membership.Selected}
			if o.GetDeletionTimestamp() != nil {
				m.Role = membership.Leaving
			}
			if !yield(m) {
				return
			}
		}
	})
}

// desiredAt is the RRset that servers should hold at a key; it has no data if the key should not exist.
func (d *DesiredState) desiredAt(k rrset.Key) rrset.RRset {
	if d.desired != nil {
		if s, ok := d.desired.Get(k); ok {
			return s
		}
	}
	return rrset.RRset{Key: k}
}

func (d *DesiredState) isPending(k rrset.Key) bool {
	_, ok := d.pending.Get(k)
	return ok
}

// Object is an object of the zone as it was at the time of this declaration; nil if it had no role in the zone.
func (d *DesiredState) Object(key source.ObjectKey) source.Object {
	o, _ := d.objects.Get(key)
	return o
}

// Doubt says that a zone above which is not served here has DS records of other keys than the zone's, as the controller has seen it; empty if
// it has not.
func (d *DesiredState) Doubt() string {
	if c := meta.FindStatusCondition(d.zone.Status.Conditions, status.Delegated); c != nil && c.Reason == status.DSUnmatched {
		return c.Message
	}
	return ""
}

// ZoneName is the zone's canonical name, with the final dot.
func (d *DesiredState) ZoneName() string {
	if d.desired != nil {
		return d.desired.Name
	}
	return absoluteName(d.zone.Spec.ZoneName)
}

// zonePending reports whether the controller still has to bring the zone itself to its servers.
func (d *DesiredState) zonePending() bool {
	return v1beta1.IsGoing(d.zone) || d.isUnobserved() || meta.IsStatusConditionTrue(d.zone.Status.Conditions, status.Progressing)
}

// isUnobserved reports whether the controller has not finished a pass over the current spec of the zone.
func (d *DesiredState) isUnobserved() bool {
	return d.zone.Status.ObservedGeneration < d.zone.Generation
}

// remark is for a zone whose name servers wait for addresses, that is only watched, or of which a guard holds something back.
func (d *DesiredState) remark() string {
	if d.desired == nil || d.desired.NameServers.Waiting == "" {
		return d.waitRemark()
	}
	return withRemark(d.desired.NameServers.Waiting, d.waitRemark())
}

func (d *DesiredState) waitRemark() string {
	switch {
	case d.zone.Annotations[v1beta1.PausedAnnotation] == "true":
		return "the zone is paused by its annotation " + v1beta1.PausedAnnotation + ": nothing is changed on its servers"
	case d.zone.Status.HeldPlan != "":
		return "the zone's guard holds changes back until somebody confirms them: " + status.ConfirmCommand(d.zone, d.zone.Status.HeldPlan)
	}
	return ""
}

// isHeld reports whether the zone's guard holds back what is to become of an RRset: it is to be removed, or an object says so that declares it.
func (d *DesiredState) isHeld(k rrset.Key) bool {
	if d.zone.Status.HeldPlan == "" {
		return false
	}
	saysSo := func(o source.ObjectKey) bool {
		object := d.Object(o)
		programmed := meta.FindStatusCondition(conditionsOf(object), status.Programmed)
		return object != nil && programmed != nil && programmed.Reason == status.ReasonHeld
	}
	causes, pending := d.pending.Get(k)
	return pending && (len(d.desiredAt(k).Rdata) == 0 || slices.ContainsFunc(causes, saysSo))
}

// hostStatus is how far the zone is configured on the instance or the provider of a server, and the message about that, from the zone's
// status; Claimed if that does not say.
func (d *DesiredState) hostStatus(s observe.Server) (v1beta1.ZoneInstanceStatus, string) {
	for _, p := range d.zone.Status.Providers {
		if s.Provider == p.Name {
			return p.Status, p.Message
		}
	}
	for _, i := range d.zone.Status.Bind9Instances {
		if s.Provider == "" && i.Namespace == s.Namespace && i.Name == s.Instance {
			return i.Status, i.Message
		}
	}
	return v1beta1.ZoneClaimed, ""
}

// ObjectsAt yields the objects whose SyncStatus depends on what servers hold at an owner name; some may be repeated. The
// SyncStatus of objects that are out of sync may depend on it, too, without their being among them.
func (d *DesiredState) ObjectsAt(name string) iter.Seq[source.ObjectKey] {
	return func(yield func(source.ObjectKey) bool) {
		if d.desired != nil {
			for k, s := range d.desired.RRsets.Near(rrset.Key{Name: name}) {
				if k.Name == name && !yieldOwners(s, yield) {
					return
				}
			}
		}
		for k, objects := range d.pending.Near(rrset.Key{Name: name}) {
			for _, o := range objects {
				if k.Name == name && !yield(o) {
					return
				}
			}
		}
	}
}

func yieldOwners(s source.RRset, yield func(source.ObjectKey) bool) bool {
	for _, owners := range s.Owners {
		for _, o := range owners {
			if !yield(o.Key()) {
				return false
			}
		}
	}
	return true
}

// AffectedObjects yields the objects whose SyncStatus may differ from that by an earlier DesiredState of the zone with the same answers;
// some may be repeated. That of objects that are out of sync may differ, too, without their being among them. all is true if
// it is every object of the zone.
func (d *DesiredState) AffectedObjects(old *DesiredState) (objects iter.Seq[source.ObjectKey], all bool) {
	if old == nil || d.desired == nil || old.desired == nil || d.problem != old.problem || d.waitRemark() != old.waitRemark() ||
		d.isUnobserved() != old.isUnobserved() || !equality.Semantic.DeepEqual(d.zoneFailure(d.zone.Namespace), old.zoneFailure(old.zone.Namespace)) {
		return func(func(source.ObjectKey) bool) {}, true // A nil function cannot be ranged over.
	}
	atName := func(name string) iter.Seq[source.ObjectKey] {
		return seq.Concat(d.ObjectsAt(name), old.ObjectsAt(name))
	}
	return seq.Concat(d.desired.ChangedObjects(old.desired), seq.FlatMap(d.changedNames(old), atName)), false
}

// changedNames yields the owner names at which declared or pending RRsets differ; some may be repeated.
func (d *DesiredState) changedNames(old *DesiredState) iter.Seq[string] {
	return changedDeclarations(d.desired, old.desired, d.pending, old.pending)
}

// changedDeclarations is changedNames by what is declared and pending, now and before.
func changedDeclarations(desired, before *source.Zone, waits, waited pending) iter.Seq[string] {
	return seq.Concat(desired.ChangedNames(before), seq.Map(snapshot.Diff(waits, waited, slices.Equal), func(k rrset.Key) string { return k.Name }))
}

func absoluteName(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, ".")) + "."
}

// DesiredCache maintains the desired state of one zone: Update returns what NewDesiredState would, at the cost of what changed.
// It is not safe for concurrent use; what it returns is.
type DesiredCache struct {
	declared *DesiredState
	// keys are the pending RRsets of each object that has any.
	keys map[source.ObjectKey][]rrset.Key
}

// NewDesiredCache returns an empty DesiredCache. A zone whose name changes needs another one.
func NewDesiredCache() *DesiredCache {
	return &DesiredCache{
		declared: &DesiredState{
			pending: snapshot.New[rrset.Key, []source.ObjectKey](hashByName), objects: snapshot.New[source.ObjectKey, source.Object](hashByObject),
			compared: &comparisonCache{},
		},
		keys: map[source.ObjectKey][]rrset.Key{},
	}
}

// Update makes the desired state of the zone as it is now; desired and problem are as in NewDesiredState. changed yields the objects that have
// changed since the last Update: themselves, their roles, or the outcome of their declarations (source.Zone.ChangedObjects).
func (b *DesiredCache) Update(zone *v1beta1.DNSZone, desired *source.Zone, problem *Problem, changed iter.Seq[membership.Member]) *DesiredState {
	last := b.declared
	d := &DesiredState{zone: zone, desired: desired, problem: problem, pending: last.pending, compared: last.compared}
	switch {
	case desired == nil && problem == nil:
		d.problem = &Problem{Reason: status.Invalid, Message: "the zone could not be read"}
	case problem != nil && last.problem != nil && *problem == *last.problem:
		d.problem = last.problem
	}
	edit, objects := pendingEdit{last.pending.Edit()}, last.objects.Edit()
	for m := range changed {
		if m.Object != nil && m.Role != membership.NoRole {
			objects.Put(m.Key, m.Object)
		} else {
			objects.Delete(m.Key)
		}
		keys := d.pendingKeys(m)
		if slices.Equal(b.keys[m.Key], keys) {
			continue
		}
		edit.removeObject(m.Key, b.keys[m.Key])
		edit.addObject(m.Key, keys)
		if delete(b.keys, m.Key); len(keys) > 0 {
			b.keys[m.Key] = keys
		}
	}
	d.pending, d.objects = edit.Map(), objects.Map()
	b.declared = d
	return d
}

// pendingEdit is a map of pending RRsets under construction. Its lists of objects are sorted and immutable.
type pendingEdit struct {
	*snapshot.Edit[rrset.Key, []source.ObjectKey]
}

func (e pendingEdit) addObject(o source.ObjectKey, keys []rrset.Key) {
	for _, k := range keys {
		objects, _ := e.Get(k)
		if i, known := slices.BinarySearchFunc(objects, o, compareObjects); !known {
			e.Put(k, slices.Insert(slices.Clone(objects), i, o))
		}
	}
}

func (e pendingEdit) removeObject(o source.ObjectKey, keys []rrset.Key) {
	for _, k := range keys {
		objects, _ := e.Get(k)
		i, known := slices.BinarySearchFunc(objects, o, compareObjects)
		switch {
		case known && len(objects) == 1:
			e.Delete(k)
		case known:
			e.Put(k, slices.Delete(slices.Clone(objects), i, i+1))
		}
	}
}

func compareObjects(a, b source.ObjectKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}
