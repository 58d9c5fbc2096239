package source

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
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
	// Contested: it becomes the zone's as soon as another zone has let go of it.
	Contested
	// AlsoSelected: the zone selects it, and so does an older zone, whose it is.
	AlsoSelected
)

// Affected is an object whose role in a zone is another one now, or that has changed itself and has a role there. Zone is
// the zero value for an object that has no role anywhere: an orphan.
type Affected struct {
	Zone   types.NamespacedName
	Object ObjectKey
}

// Members knows which object has which role in which zone, and keeps up with their changes at the cost of what a change
// touches: ZoneOf, HolderOf and EndpointZone say the same of a single object, and cost a look at every zone.
//
// It holds the objects that it was given, changes none, and is not safe for concurrent use.
type Members struct {
	zones   map[types.NamespacedName]*memberZone
	objects map[ObjectKey]*member
	// byName holds the zones of each canonical DNS name.
	byName index[string, *memberZone]
	// selectors holds for each pair the zones with a selector that demands it.
	selectors index[pair, *memberZone]
	// labels holds the records that have a pair, claims the objects that say that a zone holds their data.
	labels index[pair, *member]
	claims index[claimOn, *member]
	// outside are the DNSEndpoints with a name that no zone takes.
	outside map[*member]struct{}
}

// memberZone is a zone with the objects that have a role in it.
type memberZone struct {
	*v1beta1.DNSZone
	key     types.NamespacedName
	objects map[*member]Role
}

// member is an object with its roles.
type member struct {
	Object
	key   ObjectKey
	roles roles
}

// roles are those of one object; there are few.
type roles []zoneRole

type zoneRole struct {
	zone *memberZone
	role Role
}

func (r roles) in(z *memberZone) Role {
	for _, known := range r {
		if known.zone == z {
			return known.role
		}
	}
	return NoRole
}

// set changes the role in a zone; NoRole takes it away.
func (r *roles) set(z *memberZone, role Role) {
	i := slices.IndexFunc(*r, func(known zoneRole) bool { return known.zone == z })
	switch {
	case i < 0 && role != NoRole:
		*r = append(*r, zoneRole{z, role})
	case i >= 0 && role != NoRole:
		(*r)[i].role = role
	case i >= 0:
		*r = slices.Delete(*r, i, i+1)
	}
}

// NewMembers makes Members of nothing.
func NewMembers() *Members {
	return &Members{
		zones: map[types.NamespacedName]*memberZone{}, objects: map[ObjectKey]*member{}, byName: index[string, *memberZone]{},
		selectors: index[pair, *memberZone]{}, labels: index[pair, *member]{}, claims: index[claimOn, *member]{},
		outside: map[*member]struct{}{},
	}
}

// Zone is the zone with that key, nil when there is none.
func (m *Members) Zone(key types.NamespacedName) *v1beta1.DNSZone {
	if z := m.zones[key]; z != nil {
		return z.DNSZone
	}
	return nil
}

// Zones are all zones.
func (m *Members) Zones() []*v1beta1.DNSZone {
	all := make([]*v1beta1.DNSZone, 0, len(m.zones))
	for _, z := range m.zones {
		all = append(all, z.DNSZone)
	}
	return all
}

// Named are the zones of all namespaces that have a DNS name, however it is written.
func (m *Members) Named(zoneName string) []*v1beta1.DNSZone {
	name, err := ZoneName(zoneName)
	if err != nil {
		return nil
	}
	var all []*v1beta1.DNSZone
	for z := range m.byName[name] {
		all = append(all, z.DNSZone)
	}
	return all
}

// Role is what an object is to a zone, with the object as it was last set.
func (m *Members) Role(zone types.NamespacedName, key ObjectKey) (Object, Role) {
	o, z := m.objects[key], m.zones[zone]
	if o == nil || z == nil {
		return nil, NoRole
	}
	return o.Object, o.roles.in(z)
}

// Of yields the objects that have a role in a zone.
func (m *Members) Of(zone types.NamespacedName) iter.Seq2[Object, Role] {
	return func(yield func(Object, Role) bool) {
		if z := m.zones[zone]; z != nil {
			for o, role := range z.objects {
				if !yield(o.Object, role) {
					return
				}
			}
		}
	}
}

// Roles yields the zones in which an object has a role, by namespace and name.
func (m *Members) Roles(key ObjectKey) iter.Seq2[*v1beta1.DNSZone, Role] {
	return func(yield func(*v1beta1.DNSZone, Role) bool) {
		o := m.objects[key]
		if o == nil {
			return
		}
		for _, r := range slices.SortedFunc(slices.Values(o.roles), func(a, b zoneRole) int {
			return cmp.Or(cmp.Compare(a.zone.key.Namespace, b.zone.key.Namespace), cmp.Compare(a.zone.key.Name, b.zone.key.Name))
		}) {
			if !yield(r.zone.DNSZone, r.role) {
				return
			}
		}
	}
}

// Orphan is an object that has no role anywhere, nil when it has one or does not exist.
func (m *Members) Orphan(key ObjectKey) Object {
	if o := m.objects[key]; o != nil && len(o.roles) == 0 {
		return o.Object
	}
	return nil
}

// EndpointZone is the zone that a name in a DNSEndpoint of a namespace belongs to, as the function of that name has it.
func (m *Members) EndpointZone(namespace, dnsName string) *v1beta1.DNSZone {
	if z := m.endpointZone(namespace, dnsName); z != nil {
		return z.DNSZone
	}
	return nil
}

// SetObject takes an object as it is now.
func (m *Members) SetObject(o Object) []Affected {
	key := KeyOf(o)
	known := m.objects[key]
	if known == nil {
		known = &member{Object: o, key: key}
		m.objects[key] = known
		m.enter(known)
		return m.assign(known, true)
	}
	changed := !sameWanted(known.Object, o)
	m.leave(known)
	known.Object = o
	m.enter(known)
	return m.assign(known, changed)
}

// RemoveObject forgets an object that does not exist any more; it was last as given. Zones that have let go of it before
// are not affected.
func (m *Members) RemoveObject(last Object) []Affected {
	key := KeyOf(last)
	o := m.objects[key]
	if o == nil {
		return nil
	}
	released := last.GetDeletionTimestamp() != nil && !hasFinalizer(last)
	var affected []Affected
	for _, r := range o.roles {
		delete(r.zone.objects, o)
		if r.role == Selected || !released {
			affected = append(affected, Affected{r.zone.key, key})
		}
	}
	m.leave(o)
	delete(m.outside, o)
	delete(m.objects, key)
	return affected
}

// enter adds an object to the indexes by what it says, leave removes it.
func (m *Members) enter(o *member) {
	for p := range pairsOf(o.Object) {
		m.labels.add(p, o)
	}
	for claim := range claimsOf(o.Object) {
		m.claims.add(claim, o)
	}
}

func (m *Members) leave(o *member) {
	for p := range pairsOf(o.Object) {
		m.labels.remove(p, o)
	}
	for claim := range claimsOf(o.Object) {
		m.claims.remove(claim, o)
	}
}

// SetZone takes a zone as it is now.
func (m *Members) SetZone(zone *v1beta1.DNSZone) []Affected {
	key := types.NamespacedName{Namespace: zone.Namespace, Name: zone.Name}
	known := m.zones[key]
	var affected []Affected
	switch {
	case known == nil:
	case known.UID != zone.UID:
		affected = m.RemoveZone(key)
	case sameReach(known.DNSZone, zone):
		known.DNSZone = zone
		return nil
	default:
		reach := m.reach(known)
		m.exclude(known)
		known.DNSZone = zone
		m.include(known)
		maps.Copy(reach, m.reach(known))
		return m.assignAll(reach)
	}
	z := &memberZone{DNSZone: zone, key: key, objects: map[*member]Role{}}
	m.zones[key] = z
	m.include(z)
	affected = append(affected, m.assignAll(m.reach(z))...)
	return slices.DeleteFunc(affected, func(a Affected) bool {
		return a.Zone.Name == "" && len(m.objects[a.Object].roles) > 0 // An orphan for a moment only.
	})
}

// RemoveZone forgets a zone that does not exist any more.
func (m *Members) RemoveZone(key types.NamespacedName) []Affected {
	z := m.zones[key]
	if z == nil {
		return nil
	}
	delete(m.zones, key)
	m.exclude(z)
	return slices.DeleteFunc(m.assignAll(maps.Clone(z.objects)), func(a Affected) bool { return a.Zone == key })
}

func (m *Members) assignAll(objects map[*member]Role) []Affected {
	var affected []Affected
	for o := range objects {
		// Which of its names an endpoint's zone takes may have changed even where its role has not.
		_, record := o.Object.(v1beta1.Record)
		affected = append(affected, m.assign(o, !record)...)
	}
	return affected
}

// assign finds an object's roles anew and tells in which zones they changed: with changed, all in which it has or had one.
func (m *Members) assign(o *member, changed bool) []Affected {
	was := o.roles
	o.roles = m.rolesOf(o)
	var affected []Affected
	for _, r := range o.roles {
		r.zone.objects[o] = r.role
		if changed || was.in(r.zone) != r.role {
			affected = append(affected, Affected{r.zone.key, o.key})
		}
	}
	for _, r := range was {
		if o.roles.in(r.zone) == NoRole {
			delete(r.zone.objects, o)
			affected = append(affected, Affected{r.zone.key, o.key})
		}
	}
	if len(o.roles) == 0 && (changed || len(was) > 0) {
		affected = append(affected, Affected{Object: o.key})
	}
	return affected
}
