package syncstatus

import (
	"hash/maphash"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Problem is why a declaration is not part of what its zone serves.
type Problem struct{ Reason, Message string }

// Declared is the desired side of one zone. It is immutable and safe for concurrent use.
type Declared struct {
	zone    *v1beta1.DNSZone
	desired *source.Zone // nil when the zone cannot be read
	problem *Problem
	// pending holds the RRsets that the controller has yet to bring to what is declared, those that must go away among
	// them, each with the objects for whose sake.
	pending pending
	// objects are those that have to do with the zone.
	objects snapshot.Map[source.ObjectKey, source.Object]
	// compared is common to all Declareds of one Book.
	compared *comparisons
}

type pending = snapshot.Map[rrset.Key, []source.ObjectKey]

var seed = maphash.MakeSeed()

func byObject(o source.ObjectKey) uint64 { return maphash.Comparable(seed, o) }

func byName(k rrset.Key) uint64 { return snapshot.String(k.Name) }

// Declare prepares a zone from scratch. desired was built from the objects that are not being deleted; objects are all
// that have to do with the zone, those being deleted included. With a problem nothing of the zone is served, and desired
// may be nil.
func Declare(zone *v1beta1.DNSZone, desired *source.Zone, objects []source.Object, problem *Problem) *Declared {
	return NewBook().Update(zone, desired, problem, func(yield func(membership.Member) bool) {
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

// want gives the RRset that servers should hold at a key; it has no data when the key must not exist.
func (d *Declared) want(k rrset.Key) rrset.RRset {
	if d.desired != nil {
		if s, ok := d.desired.Get(k); ok {
			return s
		}
	}
	return rrset.RRset{Key: k}
}

func (d *Declared) isPending(k rrset.Key) bool {
	_, ok := d.pending.Get(k)
	return ok
}

// Object is an object of the zone as it was when this was declared; nil when it had nothing to do with the zone.
func (d *Declared) Object(key source.ObjectKey) source.Object {
	o, _ := d.objects.Get(key)
	return o
}

// ZoneName is the zone's canonical name, with the final dot.
func (d *Declared) ZoneName() string {
	if d.desired != nil {
		return d.desired.Name
	}
	return absolute(d.zone.Spec.ZoneName)
}

// zonePending tells whether the controller has yet to bring the zone itself to its servers.
func (d *Declared) zonePending() bool {
	return d.zone.DeletionTimestamp != nil || d.unseen() || meta.IsStatusConditionTrue(d.zone.Status.Conditions, status.Progressing)
}

// unseen tells whether the controller has not finished a pass over the zone as its spec is now.
func (d *Declared) unseen() bool { return d.zone.Status.ObservedGeneration < d.zone.Generation }

// paused is what is to be said about a zone that is only watched.
func (d *Declared) paused() string {
	if d.zone.Annotations[v1beta1.PausedAnnotation] != "true" {
		return ""
	}
	return "the zone is paused by its annotation " + v1beta1.PausedAnnotation + ": nothing is changed on its servers"
}

// instance is how far the controller says the zone is configured on an instance.
func (d *Declared) instance(namespace, name string) (v1beta1.ZoneInstance, bool) {
	for _, i := range d.zone.Status.Bind9Instances {
		if i.Namespace == namespace && i.Name == name {
			return i, true
		}
	}
	return v1beta1.ZoneInstance{}, false
}

// ObjectsAt yields the objects whose SyncStatus depends on what servers hold at an owner name; some more than once. Those
// that are not in step may, too, and are not among them.
func (d *Declared) ObjectsAt(name string) iter.Seq[source.ObjectKey] {
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
			if !yield(source.ObjectKey{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}) {
				return false
			}
		}
	}
	return true
}

// Touched yields the objects that may have another SyncStatus than by an earlier Declared of the zone, the servers'
// answers being the same; some more than once. Those that are not in step may, too, and are not among them. All is true
// when that is every object of the zone.
func (d *Declared) Touched(old *Declared) (objects iter.Seq[source.ObjectKey], all bool) {
	if old == nil || d.desired == nil || old.desired == nil || d.problem != old.problem || d.paused() != old.paused() ||
		d.unseen() != old.unseen() {
		return nil, true
	}
	return func(yield func(source.ObjectKey) bool) {
		for o := range d.desired.ChangedObjects(old.desired) {
			if !yield(o) {
				return
			}
		}
		for name := range d.changedNames(old) {
			for _, at := range []*Declared{d, old} {
				for o := range at.ObjectsAt(name) {
					if !yield(o) {
						return
					}
				}
			}
		}
	}, false
}

// changedNames yields the owner names at which something else is declared, or pending; some more than once.
func (d *Declared) changedNames(old *Declared) iter.Seq[string] {
	return declaredNames(d.desired, old.desired, d.pending, old.pending)
}

// declaredNames is changedNames for a zone's parts: what is declared in it and what is pending, now and before.
func declaredNames(desired, before *source.Zone, waits, waited pending) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range desired.ChangedNames(before) {
			if !yield(name) {
				return
			}
		}
		for k := range snapshot.Diff(waits, waited, sameObjects) {
			if !yield(k.Name) {
				return
			}
		}
	}
}

func absolute(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, ".")) + "."
}
