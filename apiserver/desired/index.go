// Package desired keeps the desired state: which object belongs to which zones, and what each zone should serve on which
// servers. It follows every event of the caches in package informers, at the cost of what changed, and asks no server.
//
// A Zone is an immutable snapshot of one zone. Package evaluate compares it with the answers of its servers.
package desired

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Key names one object that has a SyncStatus.
type Key = source.ObjectKey

// ZoneKey names a DNSZone object.
type ZoneKey = membership.ZoneKey

// ServerFinder returns the servers of instances, with their addresses, from the pods of these.
type ServerFinder func([]*v1beta1.Bind9Instance, []*corev1.Pod) []observe.Server

// Index is the desired state. Membership follows every event; what a zone should serve is brought up to date when somebody
// asks for it.
//
// Locks are taken in this order: a zoneState's, then the Index's.
type Index struct {
	informers   *informers.Informers
	findServers ServerFinder
	// generation counts the changes of instances, pods, clusters and grants.
	generation atomic.Uint64
	// latest is the fleet that the zones of the latest generation are on.
	latest atomic.Pointer[fleetVersion]

	mu      *membership.Lock
	members *membership.Cache
	zones   map[ZoneKey]*zoneState
	swept   time.Time
}

// NewIndex returns an empty Index; Apply fills it.
func NewIndex(inf *informers.Informers, find ServerFinder) *Index {
	return &Index{
		informers: inf, findServers: find, mu: membership.NewLock(), members: membership.NewCache(), zones: map[ZoneKey]*zoneState{}, swept: time.Now(),
	}
}

// Apply takes over what the caches hold of an object now. It returns the other objects whose SyncStatus may follow; a zone
// stands for all objects that belong to it. With everywhere, zones of any namespace may have another zone above: ServersChanged is called.
func (x *Index) Apply(key Key) (concerned []Key, everywhere bool) {
	switch {
	case key.Kind == subject.ZoneKind.Kind:
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.applyZone(key)
	case informers.DeclaresRecords(key.Kind):
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.applyObject(key), false
	}
	return nil, false
}

// ServersChanged notes that an instance, a pod, a cluster or a grant has changed.
func (x *Index) ServersChanged() { x.generation.Add(1) }

// applyObject is Apply for a record or DNSEndpoint. x.mu is held.
func (x *Index) applyObject(key Key) []Key {
	now, exists := informers.Get[source.Object](x.informers, key.Kind, key.Namespace, key.Name)
	known := x.members.Object(key)
	if known == nil && !exists || exists && known == now {
		return nil
	}
	zones := x.zonesOf(key)
	var affected []membership.Affected
	if exists {
		affected = x.members.SetObject(now)
	} else {
		affected = x.members.RemoveObject(known)
	}
	concerned := x.markStale(affected)
	for _, zone := range append(zones, x.zonesOf(key)...) {
		x.markDirty(zone, key)
		concerned = append(concerned, KeyOf(zone))
	}
	return concerned
}

// zonesOf are the zones in which an object has a role. x.mu is held.
func (x *Index) zonesOf(key Key) []ZoneKey {
	var zones []ZoneKey
	for _, r := range x.members.Roles(key) {
		zones = append(zones, membership.KeyOfZone(r.Zone))
	}
	return zones
}

// markDirty makes the next snapshot of a zone look at an object. x.mu is held.
func (x *Index) markDirty(zone ZoneKey, key Key) {
	if s := x.zones[zone]; s != nil && s.built {
		s.dirty[key] = struct{}{}
		s.changes++
	}
}

// applyZone is Apply for a zone. x.mu is held.
func (x *Index) applyZone(key Key) (concerned []Key, everywhere bool) {
	zone := ZoneKey{Namespace: key.Namespace, Name: key.Name}
	now, exists := informers.Get[*v1beta1.DNSZone](x.informers, key.Kind, key.Namespace, key.Name)
	known := x.members.Zone(zone)
	if known == nil && !exists || exists && known == now {
		return nil, false
	}
	if s := x.zones[zone]; s != nil {
		s.markStale()
		if !exists || known != nil && known.UID != now.UID {
			delete(x.zones, zone)
		}
	}
	steps := x.members.ZoneRemovalSteps(zone)
	if exists {
		steps = x.members.ZoneSteps(now)
	}
	concerned = x.follow(steps)
	if !exists || known == nil || known.UID != now.UID || known.Spec.ZoneName != now.Spec.ZoneName || !membership.SameStanding(known, now) {
		for _, zone := range []*v1beta1.DNSZone{known, now} {
			related, elsewhere := x.markRelated(zone)
			concerned, everywhere = append(concerned, related...), everywhere || elsewhere
		}
	}
	if everywhere {
		x.ServersChanged()
	}
	return concerned, everywhere
}

// ApplyNamespace takes over a namespace, by whose labels zones select records. It returns what Apply does.
func (x *Index) ApplyNamespace(namespace metav1.Object, deleted bool) []Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	if deleted {
		return x.follow(x.members.NamespaceRemovalSteps(namespace.GetName()))
	}
	return x.follow(x.members.NamespaceSteps(namespace.GetName(), namespace.GetLabels()))
}

// follow runs a change of a zone or a namespace, and lists the objects concerned. x.mu is held, but given away after each step.
func (x *Index) follow(steps membership.Steps) []Key {
	concerned := map[Key]struct{}{}
	x.mu.Follow(steps, func(affected []membership.Affected) {
		for _, key := range append(x.markStale(affected), x.markMembers(affected)...) {
			concerned[key] = struct{}{}
		}
	})
	return slices.Collect(maps.Keys(concerned))
}

// markMembers makes the next snapshots look at objects whose roles have changed, and lists these and the zones. x.mu is held.
func (x *Index) markMembers(affected []membership.Affected) (objects []Key) {
	for _, a := range affected {
		if a.Object == (Key{}) {
			continue
		}
		if a.Zone.Name != "" {
			x.markDirty(a.Zone, a.Object)
			objects = append(objects, KeyOf(a.Zone))
		}
		objects = append(objects, a.Object)
	}
	return objects
}

// markRelated marks zones as stale that a zone shares servers with, and lists them: those above, of which it may hide data, and those below, of
// which it may be the parent, as it may be of those in its namespace. It may also be that of zones elsewhere, if it is on any servers. These
// are neither marked nor listed: anybody may have a zone above thousands of others', and change it all the time. x.mu is held.
func (x *Index) markRelated(zone *v1beta1.DNSZone) (keys []Key, elsewhere bool) {
	if zone == nil {
		return nil, false
	}
	name, err := declaration.ZoneName(zone.Spec.ZoneName)
	if err != nil {
		return nil, false
	}
	all, below := x.fleetAt(x.generation.Load()), x.members.ZonesBelow(name)
	var above []*v1beta1.DNSZone
	for name := range rrset.NamesUpFrom(rrset.ParentName(name)) {
		above = append(above, x.members.ZonesNamed(name)...)
	}
	near := map[*v1beta1.DNSZone]struct{}{}
	for _, z := range all.Sharing(zone, slices.Concat(above, below)) {
		near[z] = struct{}{}
	}
	for _, z := range below {
		if z.Namespace == zone.Namespace {
			near[z] = struct{}{}
		} else if _, shares := near[z]; !shares {
			elsewhere = isOnServers(zone, all)
		}
	}
	for z := range near {
		key := membership.KeyOfZone(z)
		if s := x.zones[key]; s != nil {
			s.markStale()
		}
		keys = append(keys, KeyOf(key))
	}
	return keys, elsewhere
}

// markStale marks the zones as stale that may be refused now, or be served, because of others, and lists them. x.mu is held.
func (x *Index) markStale(affected []membership.Affected) []Key {
	var zones []Key
	mark := func(zone ZoneKey) {
		if s := x.zones[zone]; s != nil {
			s.markStale()
		}
		zones = append(zones, KeyOf(zone))
	}
	for _, a := range affected {
		switch {
		case a.By != nil:
			for _, zone := range x.fleetAt(x.generation.Load()).Concerned(a, x.members) {
				mark(zone)
			}
		case a.Object == (Key{}):
			mark(a.Zone)
		}
	}
	return zones
}

// ZoneNames are the DNS names of the zones that an object belongs to.
func (x *Index) ZoneNames(key Key) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if key.Kind == subject.ZoneKind.Kind {
		if zone := x.members.Zone(ZoneKey{Namespace: key.Namespace, Name: key.Name}); zone != nil {
			return []string{declaration.DNSName(zone)}
		}
		return nil
	}
	_, zones := x.judgingZones(key)
	var names []string
	for _, zone := range zones {
		names = append(names, declaration.DNSName(x.members.Zone(zone)))
	}
	return names
}

// judgingZones are the zones that decide the SyncStatus of a record or DNSEndpoint. A record that is about to move is judged by the zone
// that it moves to; one that no zone selects any more has none, although its data may still be somewhere. x.mu is held.
func (x *Index) judgingZones(key Key) (source.Object, []ZoneKey) {
	o := x.members.Object(key)
	_, isRecord := o.(v1beta1.Record)
	var zones []ZoneKey
	for _, r := range x.members.Roles(key) {
		if r.Role.Declares() || r.Role == membership.Leaving && (!isRecord || o.GetDeletionTimestamp() != nil) {
			zones = append(zones, membership.KeyOfZone(r.Zone))
		}
	}
	return o, zones
}

// Subject is an object with all that its SyncStatus follows from, but for the answers of servers.
type Subject struct {
	Key Key
	// Object is nil for one that is to be taken from Zones[0]: a zone, or a record that belongs to one.
	Object metav1.Object
	// ZoneKeys name the zones that decide the SyncStatus; Zones are their snapshots. Of a zone the first is itself and the
	// second, if there is one, its parent.
	ZoneKeys []ZoneKey
	Zones    []*Zone
	// Unplaced are the indexes of a DNSEndpoint's endpoints that no zone takes.
	Unplaced []int
}

// Declaring are the zones that have data of the object itself.
func (s *Subject) Declaring() []*Zone {
	if s.Key.Kind == subject.ZoneKind.Kind {
		return s.Zones[:1]
	}
	return s.Zones
}

// Equal reports whether nothing has changed between two looks at an object: snapshots are the same ones, not only alike.
func (s *Subject) Equal(o *Subject) bool {
	return s.Object == o.Object && slices.Equal(s.ZoneKeys, o.ZoneKeys) && slices.Equal(s.Zones, o.Zones) && slices.Equal(s.Unplaced, o.Unplaced)
}

// resolveAttempts bounds how often an object is looked up again because it moved.
const resolveAttempts = 1000

// Resolve finds an object with current snapshots of its zones; ok is false if there is no such object.
func (x *Index) Resolve(key Key) (s Subject, ok bool) {
	s.Key = key
	switch {
	case key.Kind == subject.ZoneKind.Kind:
		s.ZoneKeys = []ZoneKey{{Namespace: key.Namespace, Name: key.Name}}
		if z := x.Zone(s.ZoneKeys[0]); z != nil {
			s.Zones, ok = []*Zone{z}, true
			if z.parent == nil {
				break
			}
			if parent := x.Zone(*z.parent); parent != nil {
				s.ZoneKeys, s.Zones = append(s.ZoneKeys, parent.Key), append(s.Zones, parent)
			}
		}
	case informers.DeclaresRecords(key.Kind):
		for range resolveAttempts {
			if x.tryResolve(&s) {
				return s, s.Object != nil || len(s.Zones) > 0
			}
		}
		return s, false
	default:
		s.Object, ok = informers.Get[metav1.Object](x.informers, key.Kind, key.Namespace, key.Name)
	}
	return s, ok
}

// Parent is the present snapshot of the zone above one; nil if no such zone is served.
func (x *Index) Parent(z *Zone) *Zone {
	if z.parent == nil {
		return nil
	}
	return x.Zone(*z.parent)
}

// tryResolve succeeds if the object stayed in its zones while their snapshots were made.
func (x *Index) tryResolve(s *Subject) bool {
	x.mu.Lock()
	o, zones := x.judgingZones(s.Key)
	s.Unplaced = x.members.UnplacedEndpoints(o)
	x.mu.Unlock()
	s.Object, s.ZoneKeys, s.Zones = nil, zones, s.Zones[:0]
	for _, zone := range zones {
		z := x.Zone(zone)
		if z == nil || z.Declared.Object(s.Key) == nil {
			return false
		}
		s.Zones = append(s.Zones, z)
	}
	if _, isRecord := o.(v1beta1.Record); o != nil && (!isRecord || len(zones) == 0) {
		s.Object = o
	}
	return true
}

// KeyOf returns the Key of a zone.
func KeyOf(zone ZoneKey) Key {
	return Key{Kind: subject.ZoneKind.Kind, Namespace: zone.Namespace, Name: zone.Name}
}

// ZonesOf are the zones that the verdicts about some objects, nil for none, follow from.
func ZonesOf(subjects ...*Subject) map[*Zone]bool {
	zones := map[*Zone]bool{}
	for _, s := range subjects {
		if s != nil {
			for _, z := range s.Zones {
				zones[z] = true
			}
		}
	}
	return zones
}
