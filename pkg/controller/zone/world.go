package zone

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// zoneKey names a DNSZone object.
type zoneKey = membership.ZoneKey

// world is what informers have told about zones and the objects that declare their data, and what of it no pass has
// taken yet. It is safe for concurrent use.
type world struct {
	mu      sync.Mutex
	members *membership.Cache
	// dirty holds for each zone the objects that changed since its last pass.
	dirty map[zoneKey]map[source.ObjectKey]struct{}
	// orphans holds for each namespace objects that are in no zone and have not been told so.
	orphans map[string]map[source.ObjectKey]struct{}
	// queue takes requests for passes; nil before the first event.
	queue workqueue.TypedInterface[ctrl.Request]
}

func newWorld() *world {
	return &world{
		members: membership.NewCache(), dirty: map[zoneKey]map[source.ObjectKey]struct{}{},
		orphans: map[string]map[source.ObjectKey]struct{}{},
	}
}

// setZone and the three below take note of a change and give the requests to which it leads. What changes status alone
// leads to none.
func (w *world) setZone(zone *v1beta1.DNSZone) []ctrl.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := membership.KeyOfZone(zone)
	old := w.members.Zone(key)
	requests := w.note(w.members.SetZone(zone))
	if old != nil && sameZone(old, zone) {
		return requests
	}
	return append(requests, w.namesakes(zone)...)
}

func (w *world) removeZone(zone *v1beta1.DNSZone) []ctrl.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := membership.KeyOfZone(zone)
	requests := append(w.namesakes(zone), w.note(w.members.RemoveZone(key))...)
	delete(w.dirty, key)
	return requests
}

func (w *world) setObject(o source.Object) []ctrl.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.note(w.members.SetObject(o))
}

func (w *world) removeObject(last source.Object) []ctrl.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.note(w.members.RemoveObject(last))
}

// note keeps what changed for the next pass over each zone concerned. w.mu is held.
func (w *world) note(affected []membership.Affected) []ctrl.Request {
	woken := map[ctrl.Request]struct{}{}
	for _, a := range affected {
		if a.Zone.Name == "" {
			add(w.orphans, a.Object.Namespace, a.Object)
			woken[orphansOf(a.Object.Namespace)] = struct{}{}
			continue
		}
		add(w.dirty, a.Zone, a.Object)
		woken[ctrl.Request{NamespacedName: a.Zone}] = struct{}{}
	}
	return slices.Collect(maps.Keys(woken))
}

func add[K, V comparable](sets map[K]map[V]struct{}, key K, value V) {
	if sets[key] == nil {
		sets[key] = map[V]struct{}{}
	}
	sets[key][value] = struct{}{}
}

// wake asks for a pass over a zone.
func (w *world) wake(zone zoneKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(ctrl.Request{NamespacedName: zone})
	}
}

// namesakes are the zones of a DNS name, one of which may follow a duplicate that is gone. w.mu is held.
func (w *world) namesakes(zone *v1beta1.DNSZone) []ctrl.Request {
	requests := []ctrl.Request{fleet.RequestFor(zone)}
	for _, other := range w.members.ZonesNamed(zone.Spec.ZoneName) {
		if other.UID != zone.UID {
			requests = append(requests, fleet.RequestFor(other))
		}
	}
	return requests
}

// zone is a zone with those that have its DNS name; nil when it does not exist.
func (w *world) zone(key zoneKey) (zone *v1beta1.DNSZone, namesakes []*v1beta1.DNSZone) {
	if zone = w.members.Zone(key); zone != nil {
		namesakes = w.members.ZonesNamed(zone.Spec.ZoneName)
	}
	return zone, namesakes
}

// take hands out the objects of a zone that changed since the last call; with whole all that have a role in it.
func (w *world) take(zone zoneKey, whole bool) []membership.Member {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []membership.Member
	if whole {
		all = w.members.Members(zone)
	} else {
		for key := range w.dirty[zone] {
			all = append(all, w.members.Member(zone, key))
		}
	}
	delete(w.dirty, zone)
	return all
}

// putBack has objects handed out once more.
func (w *world) putBack(zone zoneKey, keys ...source.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		add(w.dirty, zone, key)
	}
}

// takeOrphans hands out the objects of a namespace that came to be in no zone since the last call.
func (w *world) takeOrphans(namespace string) []source.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []source.Object
	for key := range w.orphans[namespace] {
		if o := w.members.Object(key); o != nil && len(w.members.Roles(key)) == 0 {
			all = append(all, o)
		}
	}
	delete(w.orphans, namespace)
	return all
}

// zonesOf names, once each, the zones that have objects; a few thousand objects are looked at.
func (w *world) zonesOf(keys []source.ObjectKey) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, key := range keys[:min(len(keys), 1000)] {
		for _, at := range w.members.Roles(key) {
			if at.Role.Declares() && !slices.Contains(names, at.Zone.Name) {
				names = append(names, at.Zone.Name)
			}
		}
	}
	return names
}

// orphansOf asks for the objects of a namespace that are in no zone.
func orphansOf(namespace string) ctrl.Request {
	return ctrl.Request{NamespacedName: zoneKey{Namespace: namespace}}
}
