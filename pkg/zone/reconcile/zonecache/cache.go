// Package zonecache knows the zones and the objects that declare their data, and which of these no pass has handled yet. It
// is fed by informers: an event costs what it affects, and puts the zones concerned into the queue.
package zonecache

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// Cache holds what informers have reported, and what of it no pass has taken yet. It is safe for concurrent use.
type Cache struct {
	// Members knows the roles of all objects.
	Members *membership.Cache
	// Fleet reads where zones are served, which decides for which zones another one matters; without it, it does for none. It is set before
	// the first event.
	Fleet func() (*membership.Fleet, error)

	mu *membership.Lock
	// dirty holds for each zone the objects that changed since its last pass.
	dirty map[membership.ZoneKey]map[source.ObjectKey]struct{}
	// since holds when the first of these changes was noticed.
	since map[membership.ZoneKey]time.Time
	// released holds for each zone the deleted objects that it has released and that still exist.
	released map[membership.ZoneKey]map[source.ObjectKey]types.UID
	// orphans holds for each namespace objects that are in no zone and whose status may not say so.
	orphans map[string]map[source.ObjectKey]struct{}
	// queue takes requests for passes; nil before the first event.
	queue workqueue.TypedInterface[ctrl.Request]
}

// New returns an empty cache.
func New() *Cache {
	members := membership.NewCache()
	members.KeepsStatuses = true
	return &Cache{
		mu: membership.NewLock(), Members: members, dirty: map[membership.ZoneKey]map[source.ObjectKey]struct{}{}, since: map[membership.ZoneKey]time.Time{},
		released: map[membership.ZoneKey]map[source.ObjectKey]types.UID{}, orphans: map[string]map[source.ObjectKey]struct{}{},
	}
}

// Set stores a DNSZone, a namespace or an object that declares data, and returns the requests to which the change leads. What changes
// status alone leads to none.
func (c *Cache) Set(o any) []ctrl.Request {
	requests, affected := c.store(o)
	return append(requests, c.concerned(affected)...)
}

// store is Set without the requests for zones that others concern, by what is affected.
func (c *Cache) store(o any) (requests []ctrl.Request, affected []membership.Affected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := o.(type) {
	case *v1beta1.DNSZone:
		old := c.Members.Zone(membership.KeyOfZone(o))
		requests, affected = c.follow(c.Members.ZoneSteps(o))
		if old == nil || !isSameZone(old, o) {
			requests = append(requests, inventory.RequestFor(o))
		}
	case *corev1.Namespace:
		return c.follow(c.Members.NamespaceSteps(o.Name, o.Labels))
	case source.Object:
		affected = c.Members.SetObject(o)
		requests = c.markDirty(affected)
	}
	return requests, affected
}

// follow runs a change of a zone or a namespace. It returns the requests that follow, and what stands for other zones. c.mu is held, but given
// away after each step.
func (c *Cache) follow(steps membership.Steps) (requests []ctrl.Request, besides []membership.Affected) {
	all := map[ctrl.Request]struct{}{}
	c.mu.Follow(steps, func(affected []membership.Affected) {
		for _, r := range c.markDirty(affected) {
			all[r] = struct{}{}
		}
		besides = append(besides, slices.DeleteFunc(affected, func(a membership.Affected) bool { return a.By == nil })...)
	})
	return slices.Collect(maps.Keys(all)), besides
}

// Remove drops a DNSZone, a namespace or an object that declares data, given as it was last, and returns the requests to which that
// leads.
func (c *Cache) Remove(last any) []ctrl.Request {
	requests, affected := c.drop(last)
	return append(requests, c.concerned(affected)...)
}

// drop is to Remove what store is to Set.
func (c *Cache) drop(last any) (requests []ctrl.Request, affected []membership.Affected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := last.(type) {
	case *v1beta1.DNSZone:
		key := membership.KeyOfZone(o)
		requests, affected = c.follow(c.Members.ZoneRemovalSteps(key))
		requests = append(requests, inventory.RequestFor(o))
		delete(c.dirty, key)
		delete(c.since, key)
		delete(c.released, key)
		return requests, affected
	case *corev1.Namespace:
		return c.follow(c.Members.NamespaceRemovalSteps(o.Name))
	case source.Object:
		affected = slices.DeleteFunc(c.Members.RemoveObject(o), func(a membership.Affected) bool { return c.takeReleased(a, o.GetUID()) })
	}
	return c.markDirty(affected), affected
}

// concerned returns requests for the zones that others may refuse, permit or delegate now. c.mu is not held: reading the fleet may
// wait for caches. If it cannot be read, the next pass over each of the zones finds out.
func (c *Cache) concerned(affected []membership.Affected) (requests []ctrl.Request) {
	affected = slices.DeleteFunc(affected, func(a membership.Affected) bool { return a.By == nil })
	if len(affected) == 0 || c.Fleet == nil {
		return nil
	}
	fleet, err := c.Fleet()
	if err != nil {
		return nil
	}
	for _, a := range affected {
		for _, zone := range fleet.Concerned(a, c.Members) {
			requests = append(requests, ctrl.Request{NamespacedName: zone})
		}
	}
	return requests
}

// NoteReleased remembers that a zone has released some objects. When a deleted one of them is gone, that is no news for the
// zone: thousands that are deleted at once would otherwise cost it as many passes. The event of their end does not show it. It has
// the object as it was stored last, with our finalizer.
func (c *Cache) NoteReleased(zone membership.ZoneKey, objects []source.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Members.Zone(zone) == nil {
		return
	}
	for _, o := range objects {
		key := source.KeyOf(o)
		if o.GetDeletionTimestamp().IsZero() || c.Members.Object(key) == nil {
			continue
		}
		if c.released[zone] == nil {
			c.released[zone] = map[source.ObjectKey]types.UID{}
		}
		c.released[zone][key] = o.GetUID()
	}
}

// takeReleased reports whether a zone had released an object, and forgets it. c.mu is held.
func (c *Cache) takeReleased(a membership.Affected, uid types.UID) bool {
	known, ok := c.released[a.Zone][a.Object]
	if !ok {
		return false
	}
	if delete(c.released[a.Zone], a.Object); len(c.released[a.Zone]) == 0 {
		delete(c.released, a.Zone)
	}
	return known == uid
}

// EnqueueAbove asks for passes over the zones above one that has appeared on servers or goes from them: while it is there,
// it hides what they declare at or below its name. Those on other servers are not looked at: anybody may have zones below theirs come and go.
func (c *Cache) EnqueueAbove(zone *v1beta1.DNSZone) {
	if c.Fleet == nil {
		return
	}
	fleet, err := c.Fleet()
	if err != nil {
		return // The next pass over each of them finds out.
	}
	for _, name, _ := strings.Cut(zone.Spec.ZoneName, "."); name != ""; _, name, _ = strings.Cut(name, ".") {
		for _, above := range fleet.Sharing(zone, c.Members.ZonesNamed(name)) {
			c.Enqueue(membership.KeyOfZone(above))
		}
	}
}

// markDirty keeps what changed for the next pass over each zone concerned. c.mu is held.
func (c *Cache) markDirty(affected []membership.Affected) []ctrl.Request {
	requests := map[ctrl.Request]struct{}{}
	for _, a := range affected {
		if a.By != nil {
			continue
		}
		if a.Zone.Name == "" {
			addTo(c.orphans, a.Object.Namespace, a.Object)
			// A request without a name is for the orphans of a namespace.
			requests[ctrl.Request{NamespacedName: membership.ZoneKey{Namespace: a.Object.Namespace}}] = struct{}{}
			continue
		}
		if a.Object != (source.ObjectKey{}) {
			c.addDirty(a.Zone, a.Object)
		}
		requests[ctrl.Request{NamespacedName: a.Zone}] = struct{}{}
	}
	return slices.Collect(maps.Keys(requests))
}

func addTo[K, V comparable](sets map[K]map[V]struct{}, key K, value V) {
	if sets[key] == nil {
		sets[key] = map[V]struct{}{}
	}
	sets[key][value] = struct{}{}
}

// isSameZone reports whether nothing that a user can change has changed: spec, labels, annotations, deletion and whether it waits.
func isSameZone(a, b *v1beta1.DNSZone) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		v1beta1.IsGoing(a) == v1beta1.IsGoing(b) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// Enqueue asks for a pass over a zone.
func (c *Cache) Enqueue(zone membership.ZoneKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.Add(ctrl.Request{NamespacedName: zone})
	}
}

// SetQueue sets the queue that takes requests for passes.
func (c *Cache) SetQueue(queue workqueue.TypedInterface[ctrl.Request]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = queue
}

// Take returns the objects of a zone that changed since the last call or, with all, every one that has a role in it. since is when
// the first of these changes was noticed; zero when there is none.
func (c *Cache) Take(zone membership.ZoneKey, all bool) (taken []membership.Member, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.WaitForSteps(c.Members, zone) // With some of its objects alone, servers would lose the data of the others.
	if all {
		taken = c.Members.Members(zone)
	} else {
		taken = make([]membership.Member, 0, len(c.dirty[zone]))
		for key := range c.dirty[zone] {
			taken = append(taken, c.Members.Member(zone, key))
		}
	}
	since = c.since[zone]
	delete(c.dirty, zone)
	delete(c.since, zone)
	return taken, since
}

// Objects lists all objects that have a role in a zone.
func (c *Cache) Objects(zone membership.ZoneKey) []membership.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.WaitForSteps(c.Members, zone) // With some of its objects alone, servers would lose the data of the others.
	return c.Members.Members(zone)
}

// OldestChange returns when the oldest change was noticed that no pass has taken; zero when there is none.
func (c *Cache) OldestChange() (oldest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, since := range c.since {
		oldest = status.Earlier(oldest, since)
	}
	return oldest
}

// Due returns for each zone with changes that no pass has taken when the first of them was noticed.
func (c *Cache) Due() map[membership.ZoneKey]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.since)
}

// PutBack has an object taken once more.
func (c *Cache) PutBack(zone membership.ZoneKey, key source.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addDirty(zone, key)
}

// addDirty has a pass take an object. c.mu is held.
func (c *Cache) addDirty(zone membership.ZoneKey, key source.ObjectKey) {
	addTo(c.dirty, zone, key)
	if c.since[zone].IsZero() {
		c.since[zone] = time.Now()
	}
}

// TakeOrphans returns the objects of a namespace that came to be in no zone since the last call.
func (c *Cache) TakeOrphans(namespace string) []source.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	var taken []source.Object
	for key := range c.orphans[namespace] {
		if o := c.Members.Object(key); o != nil && len(c.Members.Roles(key)) == 0 {
			taken = append(taken, o)
		}
	}
	delete(c.orphans, namespace)
	return taken
}

// ZonesDeclaring names, once each, the zones in which objects declare data. No more than a thousand objects are looked up.
func (c *Cache) ZonesDeclaring(keys []source.ObjectKey) []string {
	var names []string
	for _, key := range keys[:min(len(keys), 1000)] {
		for _, at := range c.Members.Roles(key) {
			if at.Role.Declares() && !slices.Contains(names, at.Zone.Name) {
				names = append(names, at.Zone.Name)
			}
		}
	}
	return names
}

// Placement returns where an object is, for the writers of statuses.
func (c *Cache) Placement(o source.Object) statuswriter.Placement {
	at := statuswriter.Placement{Unplaced: c.Members.UnplacedEndpoints(o)}
	for _, r := range c.Members.Roles(source.KeyOf(o)) {
		zone := membership.KeyOfZone(r.Zone)
		switch r.Role {
		case membership.Selected:
			at.Taken, at.Held = append(at.Taken, zone), append(at.Held, zone)
		case membership.Contested:
			at.Taken = append(at.Taken, zone)
		case membership.Leaving:
			at.Held = append(at.Held, zone)
		case membership.NoRole, membership.AlsoSelected:
		}
	}
	return at
}
