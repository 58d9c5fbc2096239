package engine

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// object names one object that has a SyncStatus.
type object = source.ObjectKey

// zoneKey names a DNSZone object.
type zoneKey = membership.ZoneKey

// Index is the desired side: which object belongs to which zones, and what each zone should serve. Who belongs where
// follows every event; what a zone should serve is brought up to date when somebody asks, at the cost of what changed.
//
// Locks are taken in this order: a side's, then the index's.
type Index struct {
	informers *Informers
	// serversOf finds the pods of instances and their addresses.
	serversOf func([]*v1beta1.Bind9Instance, []*corev1.Pod) []observe.Server
	// fleet counts the changes of instances and pods.
	fleet atomic.Uint64

	mu      sync.Mutex
	members *membership.Cache
	sides   map[zoneKey]*side
	swept   time.Time
}

func newIndex(inf *Informers) *Index {
	return &Index{informers: inf, serversOf: observe.Servers, members: membership.NewCache(), sides: map[zoneKey]*side{}, swept: time.Now()}
}

// apply takes over what the caches hold of an object now. It gives the objects elsewhere whose SyncStatus may follow, a
// zone standing for all objects that it has.
func (x *Index) apply(key object) []object {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case key.Kind == syncstatus.ZoneKind.Kind:
		return x.applyZone(key)
	case x.informers.sources[key.Kind] != nil:
		return x.applyObject(key)
	}
	return nil
}

// applyObject does so for a record or DNSEndpoint. x.mu is held.
func (x *Index) applyObject(key object) []object {
	now, exists := get[source.Object](x.informers.sources[key.Kind], key.Namespace, key.Name)
	known := x.members.Object(key)
	if known == nil && !exists || exists && known == now {
		return nil
	}
	zones := x.zonesOf(key)
	if exists {
		x.members.SetObject(now)
	} else {
		x.members.RemoveObject(known)
	}
	var concerned []object
	for _, zone := range append(zones, x.zonesOf(key)...) {
		x.touch(zone, key)
		concerned = append(concerned, zoneObject(zone))
	}
	return concerned
}

// zonesOf are the zones in which an object has a role. x.mu is held.
func (x *Index) zonesOf(key object) []zoneKey {
	var zones []zoneKey
	for _, r := range x.members.Roles(key) {
		zones = append(zones, membership.KeyOfZone(r.Zone))
	}
	return zones
}

// touch has the next view of a zone look at an object. x.mu is held.
func (x *Index) touch(zone zoneKey, key object) {
	if s := x.sides[zone]; s != nil && s.built {
		s.dirty[key] = struct{}{}
	}
}

// applyZone is apply for a zone. x.mu is held.
func (x *Index) applyZone(key object) []object {
	zone := zoneKey{Namespace: key.Namespace, Name: key.Name}
	now, exists := get[*v1beta1.DNSZone](x.informers.zones, key.Namespace, key.Name)
	known := x.members.Zone(zone)
	if known == nil && !exists || exists && known == now {
		return nil
	}
	var affected []membership.Affected
	if exists {
		affected = x.members.SetZone(now)
	} else {
		affected = x.members.RemoveZone(zone)
	}
	if s := x.sides[zone]; s != nil {
		s.stale = true
		if !exists || known != nil && known.UID != now.UID {
			delete(x.sides, zone)
		}
	}
	var concerned []object
	for _, a := range affected {
		if a.Zone.Name != "" {
			x.touch(a.Zone, a.Object)
		}
		concerned = append(concerned, a.Object)
	}
	if known == nil || !exists || known.UID != now.UID || known.Generation != now.Generation {
		concerned = append(concerned, x.namesakes(known, now)...)
	}
	return concerned
}

// namesakes has the other zones with the DNS name of one that changed looked at again: which of them is served may have
// changed. x.mu is held.
func (x *Index) namesakes(zones ...*v1beta1.DNSZone) []object {
	var all []object
	for _, zone := range zones {
		if zone == nil {
			continue
		}
		for _, other := range x.informers.named(source.DNSName(zone)) {
			if other.UID == zone.UID {
				continue
			}
			if s := x.sides[membership.KeyOfZone(other)]; s != nil {
				s.stale = true
			}
			all = append(all, zoneObject(membership.KeyOfZone(other)))
		}
	}
	return all
}

// zoneNames are the DNS names of the zones that an object belongs to.
func (x *Index) zoneNames(key object) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if key.Kind == syncstatus.ZoneKind.Kind {
		if zone := x.members.Zone(zoneKey{Namespace: key.Namespace, Name: key.Name}); zone != nil {
			return []string{source.DNSName(zone)}
		}
		return nil
	}
	_, zones := x.place(key)
	var names []string
	for _, zone := range zones {
		names = append(names, source.DNSName(x.members.Zone(zone)))
	}
	return names
}

// place gives a record or DNSEndpoint with the zones by which it is judged. A record that is about to move is judged by
// the zone that it moves to; one that no zone selects any more is nobody's, although its data may be somewhere still.
// x.mu is held.
func (x *Index) place(key object) (source.Object, []zoneKey) {
	o := x.members.Object(key)
	_, isRecord := o.(v1beta1.Record)
	var zones []zoneKey
	for _, r := range x.members.Roles(key) {
		if r.Role.Declares() || r.Role == membership.Leaving && (!isRecord || o.GetDeletionTimestamp() != nil) {
			zones = append(zones, membership.KeyOfZone(r.Zone))
		}
	}
	return o, zones
}

// subject is an object with the views by which it is judged.
type subject struct {
	key object
	// object is nil for one that is to be taken from the view: a zone or a record that belongs to one.
	object metav1.Object
	zones  []zoneKey
	views  []*view // of zones
	// unplaced are the indexes of a DNSEndpoint's endpoints that no zone takes.
	unplaced []int
}

// resolveTries bounds how often an object is looked at again because it moved.
const resolveTries = 1000

// resolve finds an object with present views of its zones. Ok is false when it does not exist.
func (x *Index) resolve(key object) (s subject, ok bool) {
	s.key = key
	switch {
	case key.Kind == syncstatus.ZoneKind.Kind:
		s.zones = []zoneKey{{Namespace: key.Namespace, Name: key.Name}}
		if v := x.view(s.zones[0]); v != nil {
			s.views, ok = []*view{v}, true
		}
	case x.informers.sources[key.Kind] != nil:
		for range resolveTries {
			if x.tryResolve(&s) {
				return s, s.object != nil || len(s.views) > 0
			}
		}
		return s, false
	case x.informers.byKind[key.Kind] != nil:
		s.object, ok = get[metav1.Object](x.informers.byKind[key.Kind], key.Namespace, key.Name)
	}
	return s, ok
}

// tryResolve is true unless the object moved while its zones were looked at.
func (x *Index) tryResolve(s *subject) bool {
	x.mu.Lock()
	o, zones := x.place(s.key)
	s.unplaced = x.members.UnplacedEndpoints(o)
	x.mu.Unlock()
	s.object, s.zones, s.views = nil, zones, s.views[:0]
	for _, zone := range zones {
		v := x.view(zone)
		if v == nil || v.declared.Object(s.key) == nil {
			return false
		}
		s.views = append(s.views, v)
	}
	if _, isRecord := o.(v1beta1.Record); o != nil && (!isRecord || len(zones) == 0) {
		s.object = o
	}
	return true
}

func zoneObject(key zoneKey) object {
	return object{Kind: syncstatus.ZoneKind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// visible names an object to a reader of namespace: one elsewhere is not named, because the reader may have no right to
// know of it.
func visible(o metav1.Object, namespace string) string {
	if o.GetNamespace() == namespace {
		return o.GetName()
	}
	return "in another namespace"
}
