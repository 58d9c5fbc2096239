// Package content knows what a zone is to hold and what each of its primaries lacks. It does no I/O. All of it can be made
// anew from Kubernetes and the servers, and is whenever there is a doubt; it is kept so that a pass costs what changed.
package content

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Zone is the desired state of one zone, and what its primaries were seen to hold. Primaries may be compared at the same
// time; everything else is for one goroutine.
type Zone struct {
	// What the builder was made for.
	generation int64
	opts       source.Options

	builder *source.Builder
	// built is the builder that has made desired: the last one while builder is new.
	built   *source.Builder
	desired *source.Zone
	// leaving are the objects that have data in the zone, belong there no more and were not released since they changed;
	// alsoSelected are those that the zone selects and an older zone has.
	leaving, alsoSelected map[source.ObjectKey]source.Object

	covering covering

	// mu guards what follows.
	mu sync.Mutex
	// retired are the RRsets that we published or may have, and that are not desired: only these may be deleted. They
	// stay until every primary was seen without them. True are those that objects other than the zone's have declared: only these
	// may be deleted where others write as well.
	retired   map[rrset.Key]bool
	leftovers leftovers
	// foreign are the RRsets that somebody else has put on a primary lately and that not all of them hold yet.
	foreign plan.Map
	// prune is true while everything that nobody declares may be deleted.
	prune     bool
	guard     guardState
	primaries map[types.NamespacedName]*Primary
}

// NewZone returns a Zone of which nothing is known.
func NewZone() *Zone {
	return &Zone{retired: map[rrset.Key]bool{}, leftovers: leftovers{}, foreign: plan.Map{}, primaries: map[types.NamespacedName]*Primary{}}
}

// Desired returns what the zone is to hold; nil before the first Update.
func (z *Zone) Desired() *source.Zone { return z.desired }

// SetPrune sets whether everything that nobody declares may be deleted.
func (z *Zone) SetPrune(prune bool) {
	if z.prune != prune {
		z.prune = prune
		z.forgetHold() // It may be of what is not to be deleted any more.
	}
}

// IsBuiltFor reports whether the desired state is one for the zone as it is. Otherwise it has to be built anew, from all
// objects.
func (z *Zone) IsBuiltFor(zone *v1beta1.DNSZone, opts source.Options) bool {
	return z.builder != nil && z.generation == zone.Generation && z.opts.SameServers(opts)
}

// Rebuild begins the desired state anew. What the servers hold and what was published is still known.
func (z *Zone) Rebuild(zone *v1beta1.DNSZone, opts source.Options) error {
	builder, err := source.NewBuilder(zone, opts)
	if err != nil {
		z.builder = nil
		return err
	}
	z.builder, z.generation, z.opts = builder, zone.Generation, opts
	z.leaving, z.alsoSelected = map[source.ObjectKey]source.Object{}, map[source.ObjectKey]source.Object{}
	return nil
}

// Discard has the desired state built anew before its next use.
func (z *Zone) Discard() { z.builder = nil }

// Unpublish is Discard for a zone that is served nowhere: nothing that its objects declared has to stay.
func (z *Zone) Unpublish() { z.builder, z.built = nil, nil }

// Update takes over what objects are to the zone now. What was desired and is no more is retired, and so is what these
// objects have, or may have, in DNS. Those that wait cannot be published as they are now: what they declared last stays.
func (z *Zone) Update(changed []membership.Member, waiting ...source.ObjectKey) {
	for _, m := range changed {
		z.setMember(m)
	}
	if z.built != nil && z.built != z.builder {
		for _, key := range waiting {
			if last := z.built.Object(key); last != nil {
				z.builder.Set(last)
			}
		}
	}
	last := z.desired
	z.desired, z.built = z.builder.Zone(), z.builder
	z.mu.Lock()
	defer z.mu.Unlock()
	if last != nil && last != z.desired {
		z.compareKept(last, z.desired)
		for name := range z.desired.ChangedNames(last) {
			for set := range last.At(name) {
				z.retire(set.Key, !last.IsApexData(set.Key))
			}
		}
	}
	for i, keys := range z.formerKeys(changed) {
		z.noteSharedDeclarations(last, changed[i].Key)
		for _, key := range keys {
			z.retire(key, true)
		}
	}
}

// compareKept has compared anew what primaries keep as it is in one of two versions of the zone. z.mu is held.
func (z *Zone) compareKept(versions ...*source.Zone) {
	for _, v := range versions {
		if v.NameServers.Waiting == "" {
			continue
		}
		names := append([]string{v.Name}, v.NameServers.Pending...)
		for key, declared := range z.retired {
			if !declared {
				names = append(names, key.Name)
			}
		}
		for _, p := range z.primaries {
			for _, name := range names {
				p.compareAgain(name)
			}
		}
	}
}

// published is what servers are to hold, without what primaries keep as it is.
func (z *Zone) published() plan.Content {
	if z.desired.NameServers.Waiting == "" {
		return z.Wanted()
	}
	return without(z.Wanted(), z.desired.IsKept)
}

// without hides RRsets of a content.
func without(c plan.Content, hide func(rrset.Key) bool) plan.Content {
	return plan.Overlay{Top: plan.Map{}, Bottom: c, Hide: hide}
}

// formerKeys returns, for each member, the RRsets in which it has data, or may have, and that no object declares now.
func (z *Zone) formerKeys(members []membership.Member) [][]rrset.Key {
	all := make([][]rrset.Key, len(members))
	isDeclared := func(key rrset.Key) bool { return z.isDesired(key) && !z.desired.IsApexData(key) }
	parallel.ForRange(len(members), func(i int) {
		if m := members[i]; m.Role == membership.Selected || m.Role == membership.Leaving {
			all[i] = slices.DeleteFunc(z.keysOf(m.Object), isDeclared)
		}
	})
	return all
}

func (z *Zone) setMember(m membership.Member) {
	delete(z.leaving, m.Key)
	delete(z.alsoSelected, m.Key)
	if m.Role != membership.Selected {
		z.builder.Remove(m.Key)
	}
	switch m.Role {
	case membership.Selected:
		z.builder.Set(m.Object)
	case membership.Leaving:
		z.leaving[m.Key] = m.Object
	case membership.AlsoSelected:
		z.alsoSelected[m.Key] = m.Object
	case membership.NoRole, membership.Contested:
	}
}

// KeysInQuestion yields the RRsets that matter on a primary: those that are declared, and those that were.
func (z *Zone) KeysInQuestion(p *Primary) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		z.mu.Lock()
		keys := slices.Collect(maps.Keys(z.retired))
		z.mu.Unlock()
		for _, key := range keys {
			if !z.isDesired(key) && !yield(key) {
				return
			}
		}
		for set := range z.desired.All() {
			if (!p.shared || !z.desired.IsApexData(set.Key) || slices.Contains(keys, set.Key)) && !yield(set.Key) {
				return
			}
		}
	}
}

// AlsoSelected yields the objects that the zone selects and an older zone has.
func (z *Zone) AlsoSelected() iter.Seq[source.ObjectKey] { return maps.Keys(z.alsoSelected) }

// Leaving yields the objects that have data in the zone, belong there no more, and were not released.
func (z *Zone) Leaving() iter.Seq2[source.ObjectKey, source.Object] { return maps.All(z.leaving) }

// TakeReleased returns the objects that leave and have no data in the zone any more, each once. One that changes and is
// still leaving then comes back through Update. stuck reports whether an RRset could not be brought to what is desired.
func (z *Zone) TakeReleased(stuck func(rrset.Key) bool) (released []source.Object) {
	return z.TakeReleasedIf(func(source.Object) bool { return true }, stuck)
}

// TakeReleasedIf is TakeReleased for some objects.
func (z *Zone) TakeReleasedIf(included func(source.Object) bool, stuck func(rrset.Key) bool) (released []source.Object) {
	for key, o := range z.leaving {
		if included(o) && !slices.ContainsFunc(z.keysOf(o), stuck) {
			released = append(released, o)
			delete(z.leaving, key)
		}
	}
	return released
}

// keysOf returns the RRsets of the zone that an object has data in, as far as its status, its spec and its annotation of
// former names say: a crash between an update and the status that reports it leaves data that only the spec knows.
func (z *Zone) keysOf(o source.Object) []rrset.Key {
	keys := source.PublishedKeys(o, z.desired.Name)
	if e, ok := o.(*v1alpha1.DNSEndpoint); ok {
		return slices.DeleteFunc(keys, func(key rrset.Key) bool { return !z.mayHold(e, key) })
	}
	return keys
}

// mayHold reports whether a name that a DNSEndpoint has is, or was, this zone's and not that of a zone below it.
func (z *Zone) mayHold(e *v1alpha1.DNSEndpoint, key rrset.Key) bool {
	published := key.Name + "/" + rrset.TypeName(key.Type)
	return z.opts.Owns(e, key.Name) || slices.ContainsFunc(e.Status.Zones, func(in v1alpha1.EndpointZone) bool {
		return slices.Contains(in.RRsets, published)
	})
}

// retire allows the deletion of an RRset where it is and nobody wants it; also where others write if an object other than the zone's
// had declared it. z.mu is held.
func (z *Zone) retire(key rrset.Key, declared bool) {
	declared = declared && (key.Type != dns.TypeNS || key.Name != z.desired.Name)
	before, known := z.retired[key]
	if known && (before || !declared) || z.isDesired(key) && !(declared && z.desired.IsApexData(key)) {
		return
	}
	z.retired[key] = declared
	for _, p := range z.primaries {
		p.compareAgain(key.Name)
	}
}

// ForgetRetired drops retired RRsets that no primary holds any more: whoever publishes there later is somebody else. gone reports
// whether that was seen of all primaries that others write to as well, or of all other primaries. They become leftovers of
// the serial on which the primaries are.
func (z *Zone) ForgetRetired(gone func(key rrset.Key, shared bool) bool, serial uint32, now time.Time) {
	maps.DeleteFunc(z.retired, func(key rrset.Key, declared bool) bool {
		if _, held := z.guard.held[key.Name]; held {
			return false
		}
		desired := z.isDesired(key)
		if desired && !z.desired.IsApexData(key) {
			return true
		}
		if !desired && !gone(key, false) || declared && !gone(key, true) {
			return false
		}
		z.leftovers[key] = leftover{serial, now}
		return true
	})
}

func (z *Zone) isDesired(key rrset.Key) bool {
	_, ok := z.desired.Get(key)
	return ok
}

// isKept reports whether primaries keep an RRset as it is: while name servers wait for addresses, also those that only former ones have.
func (z *Zone) isKept(key rrset.Key) bool {
	declared, retired := z.retired[key]
	return z.desired.IsKept(key) || retired && !declared && z.desired.NameServers.Waiting != ""
}

// isDeletable reports whether an RRset that nobody wants may be deleted. Pruning leaves the DS records of a delegation that is declared:
// without them a signed child zone is not validated (RFC 4035 section 2.4).
func (z *Zone) isDeletable(key rrset.Key) bool {
	if z.isKept(key) {
		return false
	}
	if _, ok := z.retired[key]; ok {
		return true
	}
	return z.prune && !(key.Type == dns.TypeDS && z.isDesired(rrset.Key{Name: key.Name, Type: dns.TypeNS}))
}

// isForeign reports whether an RRset that a server holds is neither desired nor ours to delete.
func (z *Zone) isForeign(key rrset.Key) bool {
	return !z.isDesired(key) && !z.isDeletable(key) && !z.isKept(key) && !rrset.IsServerMaintained(key.Type)
}

// Complete yields everything that a primary is to hold: what is desired and, of a reference, what nobody here declared.
func (z *Zone) Complete(reference *observe.Mirror) iter.Seq[rrset.RRset] {
	if reference == nil {
		return z.Wanted().All()
	}
	return func(yield func(rrset.RRset) bool) {
		z.mu.Lock()
		defer z.mu.Unlock()
		plan.Overlay{Top: z.published(), Bottom: reference, Hide: z.isDeletable}.All()(yield)
	}
}

// ChangesOf returns what a copy of the zone lacks.
func (z *Zone) ChangesOf(copied *observe.Mirror) plan.Changes {
	return plan.Calculate(z.published(), copied, z.isDeletable, z.desired.SOA, copied.SOA)
}
