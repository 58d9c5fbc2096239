package membership

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Cache knows which object has which role in which zone, and keeps up with their changes at the cost of what a change
// affects. It is safe for concurrent use. It keeps the objects that it was given and changes none; what it returns must
// not be changed either.
type Cache struct {
	// KeepsStatuses has it keep, of a DNSEndpoint whose status somebody else has replaced, a copy with the status before. It is for
	// who writes that status, and is set before the first object comes.
	KeepsStatuses bool

	mu      sync.RWMutex
	zones   map[ZoneKey]*zoneEntry
	objects map[source.ObjectKey]*objectEntry
	// namespaces are those that exist, offered the records of each that zones of others may take.
	namespaces namespaceLabels
	offered    multimap[string, *objectEntry]
	// perNamespace counts zones.
	perNamespace map[string]int
	// byName holds the zones of each canonical DNS name.
	byName multimap[string, *zoneEntry]
	// byOwnName holds those of each namespace: whoever has any number of zones of somebody's name slows nobody down.
	byOwnName multimap[ownName, *zoneEntry]
	// below holds the zones at and below each canonical DNS name.
	below multimap[string, *zoneEntry]
	// selectors holds for each label the zones with a selector that requires it.
	selectors multimap[labelKey, *zoneEntry]
	// labels holds the records that have a label, claims the objects that say that a zone holds their data.
	labels multimap[labelKey, *objectEntry]
	claims multimap[zoneClaim, *objectEntry]
	// delegations holds the NSRecords below the apex of the zones that they belong to.
	delegations multimap[delegation, *objectEntry]
	// requests holds the signed zones that ask for DS records, by the UIDs of the zones that they ask.
	requests multimap[types.UID, *zoneEntry]
	// endpoints are the DNSEndpoints of each namespace, and of anyNamespace those that zones of others may take.
	endpoints multimap[string, *objectEntry]
	// changes counts those of zones and namespaces; each looks at perStep objects in a step.
	changes uint64
	perStep int
}

// ownName is a canonical DNS name in a namespace.
type ownName struct{ namespace, name string }

// zoneEntry is a zone with the objects that have a role in it.
type zoneEntry struct {
	*v1beta1.DNSZone
	key     ZoneKey
	name    string // canonical, or empty
	labels  []labelKey
	objects map[*objectEntry]Role
	request request
	// settling counts its changes of which not all objects were looked at yet.
	settling int
}

// objectEntry is an object with its roles.
type objectEntry struct {
	source.Object
	roles roleList
	// names are those of namesAbove.
	names []uint64
	// delegates is what an NSRecord delegates; nil for others.
	delegates *delegatedName
	// lookedAt is the change for which the object was looked at last.
	lookedAt uint64
}

func (o *objectEntry) key() source.ObjectKey { return source.KeyOf(o.Object) }

// NewCache returns a cache of some zones.
func NewCache(zones ...*v1beta1.DNSZone) *Cache {
	c := &Cache{
		perStep: objectsPerStep, zones: map[ZoneKey]*zoneEntry{}, objects: map[source.ObjectKey]*objectEntry{}, perNamespace: map[string]int{},
		byName: multimap[string, *zoneEntry]{}, byOwnName: multimap[ownName, *zoneEntry]{}, selectors: multimap[labelKey, *zoneEntry]{},
		labels: multimap[labelKey, *objectEntry]{}, claims: multimap[zoneClaim, *objectEntry]{}, endpoints: multimap[string, *objectEntry]{},
		namespaces: namespaceLabels{}, offered: multimap[string, *objectEntry]{},
		below: multimap[string, *zoneEntry]{}, delegations: multimap[delegation, *objectEntry]{}, requests: multimap[types.UID, *zoneEntry]{},
	}
	for _, zone := range zones {
		c.SetZone(zone)
	}
	return c
}

// Among returns a cache of some zones, which knows the same namespaces.
func (c *Cache) Among(zones ...*v1beta1.DNSZone) *Cache {
	among := NewCache(zones...)
	c.mu.RLock()
	defer c.mu.RUnlock()
	among.namespaces = maps.Clone(c.namespaces)
	return among
}

// Zone is nil if there is no zone with that key.
func (c *Cache) Zone(key ZoneKey) *v1beta1.DNSZone {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.zones[key].zone()
}

func (z *zoneEntry) zone() *v1beta1.DNSZone {
	if z == nil {
		return nil
	}
	return z.DNSZone
}

// exists is false for a zone that is removed and whose objects have not all been looked at yet.
func (c *Cache) exists(z *zoneEntry) bool { return c.zones[z.key] == z }

// IsSettled reports whether all objects have their roles in a zone. It is false between the steps of a change of that zone.
func (c *Cache) IsSettled(key ZoneKey) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	z := c.zones[key]
	return z == nil || z.settling == 0
}

// Zones lists all zones, in no order.
func (c *Cache) Zones() []*v1beta1.DNSZone {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]*v1beta1.DNSZone, 0, len(c.zones))
	for _, z := range c.zones {
		all = append(all, z.DNSZone)
	}
	return all
}

// CountZones counts the zones in a namespace or, without one, in all.
func (c *Cache) CountZones(namespace string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if namespace == "" {
		return len(c.zones)
	}
	return c.perNamespace[namespace]
}

// ZonesNamed lists the zones of all namespaces that have a DNS name, however it is written.
func (c *Cache) ZonesNamed(zoneName string) []*v1beta1.DNSZone {
	name, err := declaration.ZoneName(zoneName)
	if err != nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []*v1beta1.DNSZone
	for z := range c.byName[name] {
		all = append(all, z.DNSZone)
	}
	return all
}

// CountNamesakes counts the other zones of a zone's namespace that have its DNS name.
func (c *Cache) CountNamesakes(zone *v1beta1.DNSZone) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return countOthers(c.byOwnName[ownName{zone.Namespace, canonicalName(zone)}], zone, func(*v1beta1.DNSZone) int { return 1 })
}

// WeighAlike weighs (SelectionWeight) the other zones of a zone's namespace that are looked at for each record that a selector of the zone is
// looked at for: by the label that the fewest zones require of all those which the selector does. Of several selectors, that with the most counts.
func (c *Cache) WeighAlike(zone *v1beta1.DNSZone) (most int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, label := range c.labelsOfZone(zone) {
		most = max(most, countOthers(c.selectors[label], zone, SelectionWeight))
	}
	return most
}

// SelectionWeight returns as how many zones one counts to the records that it may select: each is compared with all labels and values of its
// selectors.
func SelectionWeight(zone *v1beta1.DNSZone) int {
	const perZone = 16
	terms := 0
	add := func(s *metav1.LabelSelector) {
		terms += len(s.MatchLabels) + len(s.MatchExpressions)
		for i := range s.MatchExpressions {
			terms += len(s.MatchExpressions[i].Values)
		}
	}
	for i := range zone.Spec.RecordsFrom {
		from := &zone.Spec.RecordsFrom[i]
		if add(&from.Selector); from.NamespaceSelector != nil {
			add(from.NamespaceSelector)
		}
	}
	return 1 + terms/perZone
}

// countOthers counts the zones of a zone's namespace but itself, each as weight says.
func countOthers(zones map[*zoneEntry]struct{}, zone *v1beta1.DNSZone, weight func(*v1beta1.DNSZone) int) (n int) {
	for z := range zones {
		if z.Namespace == zone.Namespace && z.Name != zone.Name {
			n += weight(z.DNSZone)
		}
	}
	return n
}

// ZonesBelow lists the zones of all namespaces with a DNS name below a canonical one.
func (c *Cache) ZonesBelow(name string) []*v1beta1.DNSZone {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []*v1beta1.DNSZone
	for z := range c.below[name] {
		if z.name != name {
			all = append(all, z.DNSZone)
		}
	}
	return all
}

// ZoneOfRecord finds the zone that a record belongs to, nil when no zone selects it. It is the oldest of those that do, by
// creationTimestamp, then name: of the zones of its own namespace or, if none of these selects it, of those of other namespaces that do
// where both sides consent. A zone with a selector that cannot be read selects with its others. The record need not be in the cache.
func (c *Cache) ZoneOfRecord(record v1beta1.Record) *v1beta1.DNSZone {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var first *zoneEntry
	for z := range c.zonesSelecting(record) {
		if first == nil || compareTaking(z.DNSZone, first.DNSZone, record.GetNamespace()) < 0 {
			first = z
		}
	}
	return first.zone()
}

// ZoneOfEndpoint finds the zone that one endpoint of a DNSEndpoint, given by its metadata, belongs to, nil when there is none. It is the
// one with the longest name that the endpoint's dnsName is or ends in, label by label: of the zones of the endpoint's own namespace or,
// if none of these has such a name, of those of other namespaces where both sides consent. The zone's annotation
// bindy.firestoned.io/allow-endpoint-namespaces has to list the endpoint's namespace, and the endpoint's annotation
// bindy.firestoned.io/allow-zone-namespaces the zone's. Of several zones with that name it is the oldest. A zone whose name cannot be
// read takes no endpoints. A dnsName that is no DNS name belongs to the zone that it ends in.
func (c *Cache) ZoneOfEndpoint(e metav1.Object, dnsName string) *v1beta1.DNSZone {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.zoneOfEndpoint(e, dnsName).zone()
}

// OwnsEndpoints makes the test by which an endpoint of a DNSEndpoint belongs to a zone.
func (c *Cache) OwnsEndpoints(zone ZoneKey) func(e metav1.Object, dnsName string) bool {
	return func(e metav1.Object, dnsName string) bool {
		owner := c.ZoneOfEndpoint(e, dnsName)
		return owner != nil && KeyOfZone(owner) == zone
	}
}

// UnplacedEndpoints lists the indexes of an object's endpoints that no zone takes; none for a record.
func (c *Cache) UnplacedEndpoints(o source.Object) []int {
	e, ok := o.(*v1alpha1.DNSEndpoint)
	if !ok {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var unplaced []int
	for i, endpoint := range e.Spec.Endpoints {
		if endpoint != nil && c.zoneOfEndpoint(e, endpoint.DNSName) == nil {
			unplaced = append(unplaced, i)
		}
	}
	return unplaced
}

// Object is an object as it was last set, nil when it does not exist.
func (c *Cache) Object(key source.ObjectKey) source.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if o := c.objects[key]; o != nil {
		return o.Object
	}
	return nil
}

// Member is an object with its role in a zone, NoRole when it has none.
func (c *Cache) Member(zone ZoneKey, key source.ObjectKey) Member {
	c.mu.RLock()
	defer c.mu.RUnlock()
	o, z := c.objects[key], c.zones[zone]
	if o == nil || z == nil {
		return Member{Key: key}
	}
	return Member{key, o.Object, o.roles.in(z)}
}

// Members lists all objects that have a role in a zone.
func (c *Cache) Members(zone ZoneKey) []Member {
	c.mu.RLock()
	defer c.mu.RUnlock()
	z := c.zones[zone]
	if z == nil {
		return nil
	}
	all := make([]Member, 0, len(z.objects))
	for o, role := range z.objects {
		all = append(all, Member{o.key(), o.Object, role})
	}
	return all
}

// Roles lists the zones in which an object has a role, by namespace and name.
func (c *Cache) Roles(key source.ObjectKey) []ZoneRole {
	c.mu.RLock()
	defer c.mu.RUnlock()
	o := c.objects[key]
	if o == nil || len(o.roles) == 0 {
		return nil
	}
	all := make([]ZoneRole, 0, len(o.roles))
	for _, r := range o.roles {
		if c.exists(r.zone) {
			all = append(all, ZoneRole{r.zone.DNSZone, r.role})
		}
	}
	slices.SortFunc(all, func(a, b ZoneRole) int {
		return cmp.Or(cmp.Compare(a.Zone.Namespace, b.Zone.Namespace), cmp.Compare(a.Zone.Name, b.Zone.Name))
	})
	return all
}
