package membership

import (
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Role is what an object is to a zone.
type Role uint8

// The roles. An object may have one in several zones: a DNSEndpoint as its endpoints fall, a record when it moves.
const (
	// NoRole: the zone has nothing to do with the object.
	NoRole Role = iota
	// Selected: what it declares is part of the zone.
	Selected
	// Leaving: the zone holds data of it, or may, and it belongs there no more.
	Leaving
	// Contested: it becomes the zone's as soon as another zone has released it.
	Contested
	// AlsoSelected: the zone selects it, and so does an older zone, whose it is.
	AlsoSelected
)

// Declares reports whether an object of that role declares data in the zone, now or as soon as another zone has released it.
func (r Role) Declares() bool { return r == Selected || r == Contested }

// Member is an object with its role in one zone. The object is nil when it does not exist any more.
type Member struct {
	Key    source.ObjectKey
	Object source.Object
	Role   Role
}

// ZoneRole is a zone with the role that one object has in it.
type ZoneRole struct {
	Zone *v1beta1.DNSZone
	Role Role
}

// roleList holds the roles of one object; there are few.
type roleList []zoneRole

type zoneRole struct {
	zone *zoneEntry
	role Role
}

func (l roleList) in(z *zoneEntry) Role {
	for _, r := range l {
		if r.zone == z {
			return r.role
		}
	}
	return NoRole
}

// set adds or changes the role in a zone.
func (l *roleList) set(z *zoneEntry, role Role) {
	if i := slices.IndexFunc(*l, func(r zoneRole) bool { return r.zone == z }); i >= 0 {
		(*l)[i].role = role
		return
	}
	*l = append(*l, zoneRole{z, role})
}

func (c *Cache) rolesOf(o source.Object) roleList {
	switch object := o.(type) {
	case v1beta1.Record:
		return c.recordRoles(object)
	case *v1alpha1.DNSEndpoint:
		return c.endpointRoles(object)
	}
	return nil
}

// recordRoles assigns a record to the first of the zones that select it, unless another one still holds data of it. A zone of another
// namespace learns of no record that is not its own.
func (c *Cache) recordRoles(record v1beta1.Record) roleList {
	var all roleList
	var oldest *zoneEntry
	for z := range c.zonesSelecting(record) {
		if z.Namespace == record.GetNamespace() {
			all.set(z, AlsoSelected)
		}
		if oldest == nil || compareTaking(z.DNSZone, oldest.DNSZone, record.GetNamespace()) < 0 {
			oldest = z
		}
	}
	holder := c.holderOf(record)
	if record.GetDeletionTimestamp() != nil {
		if holder == nil && hasFinalizer(record) {
			holder = oldest // The record may have been published before its status could say where.
		}
		all, oldest = nil, nil
	}
	switch {
	case oldest == nil:
	case holder != nil && holder != oldest:
		all.set(oldest, Contested)
	default:
		all.set(oldest, Selected)
	}
	if holder != nil && holder != oldest {
		all.set(holder, Leaving)
	}
	return all
}

// endpointRoles assigns every endpoint of a DNSEndpoint to the zone that its name falls into. The object is leaving a zone where it says
// that it has data and none of its endpoints falls any more.
func (c *Cache) endpointRoles(endpoints *v1alpha1.DNSEndpoint) roleList {
	var all roleList
	place := func(dnsName string, role Role) {
		if z := c.zoneOfEndpoint(endpoints, dnsName); z != nil && role != NoRole && all.in(z) != Selected {
			all.set(z, role)
		}
	}
	published := NoRole // Without the finalizer nothing went out.
	if hasFinalizer(endpoints) {
		published = Leaving
	}
	current := Selected
	if endpoints.DeletionTimestamp != nil {
		current = published
	}
	for _, e := range endpoints.Spec.Endpoints {
		if e != nil {
			place(e.DNSName, current)
		}
	}
	for name := range source.FormerNames(endpoints) {
		place(name, published)
	}
	for claim := range claimsOf(endpoints) {
		if z := c.zones[claim.zone()]; z != nil && all.in(z) == NoRole {
			all.set(z, Leaving)
		}
	}
	return all
}
