package membership

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// multimap finds values by keys; several values may have one key.
type multimap[K, V comparable] map[K]map[V]struct{}

func (m multimap[K, V]) add(key K, value V) {
	if m[key] == nil {
		m[key] = map[V]struct{}{}
	}
	m[key][value] = struct{}{}
}

// set adds a value, or removes it.
func (m multimap[K, V]) set(key K, value V, known bool) {
	if known {
		m.add(key, value)
	} else {
		m.remove(key, value)
	}
}

func (m multimap[K, V]) remove(key K, value V) {
	if delete(m[key], value); len(m[key]) == 0 {
		delete(m, key)
	}
}

// labelKey is a label of the records of a namespace: with this value, or with any. Without a label it stands for every
// record of the namespace. Of anyNamespace are those records that may travel.
type labelKey struct {
	namespace, label, value string
	any                     bool
}

// anyNamespace stands for all namespaces.
const anyNamespace = "*"

// labelsOf yields the keys of a record's labels; none for a DNSEndpoint.
func labelsOf(o source.Object) iter.Seq[labelKey] {
	return func(yield func(labelKey) bool) {
		namespaces := []string{o.GetNamespace(), anyNamespace}
		if _, ok := o.(v1beta1.Record); !ok {
			namespaces = nil
		} else if !MayTravel(o) {
			namespaces = namespaces[:1]
		}
		for _, namespace := range namespaces {
			if !yield(labelKey{namespace: namespace}) {
				return
			}
			for label, value := range o.GetLabels() {
				if !yield(labelKey{namespace: namespace, label: label, value: value}) {
					return
				}
			}
		}
	}
}

// rarestLabels chooses labels of which every record that the selector matches has at least one, and by which as few other zones as
// possible are found: the selectors of many zones share a label such as env=prod and differ in another.
func (c *Cache) rarestLabels(namespace string, s *metav1.LabelSelector) []labelKey {
	rarest, least := []labelKey{{namespace: namespace}}, -1
	for _, labels := range requiredLabels(namespace, s) {
		zones := 0
		for _, label := range labels {
			zones += len(c.selectors[label])
		}
		if least < 0 || zones < least {
			rarest, least = labels, zones
		}
	}
	return rarest
}

// requiredLabels lists, for each requirement of a selector that names labels, those of which a record must have one.
func requiredLabels(namespace string, s *metav1.LabelSelector) [][]labelKey {
	var required [][]labelKey
	for key, value := range s.MatchLabels {
		required = append(required, []labelKey{{namespace: namespace, label: key, value: value}})
	}
	for _, r := range s.MatchExpressions {
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			labels := make([]labelKey, 0, len(r.Values))
			for _, value := range r.Values {
				labels = append(labels, labelKey{namespace: namespace, label: r.Key, value: value})
			}
			required = append(required, labels)
		case metav1.LabelSelectorOpExists:
			required = append(required, []labelKey{{namespace: namespace, label: r.Key, any: true}})
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist: // A record without the label meets these.
		}
	}
	return required
}

// indexZone makes a zone known by its name and labels, unindexZone undoes that.
func (c *Cache) indexZone(z *zoneEntry) {
	z.name, _ = declaration.ZoneName(z.Spec.ZoneName)
	z.labels = c.labelsOfZone(z.DNSZone)
	c.setZone(z, true)
}

// labelsOfZone chooses the labels by which a zone is found.
func (c *Cache) labelsOfZone(zone *v1beta1.DNSZone) (labels []labelKey) {
	for i := range zone.Spec.RecordsFrom {
		from := &zone.Spec.RecordsFrom[i]
		if labels = append(labels, c.rarestLabels(zone.Namespace, &from.Selector)...); from.NamespaceSelector != nil {
			labels = append(labels, c.rarestLabels(anyNamespace, &from.Selector)...)
		}
	}
	return labels
}

func (c *Cache) unindexZone(z *zoneEntry) { c.setZone(z, false) }

func (c *Cache) setZone(z *zoneEntry, known bool) {
	if z.name != "" {
		c.byName.set(z.name, z, known)
		c.byOwnName.set(ownName{z.Namespace, z.name}, z, known)
	}
	for name := range rrset.NamesUpFrom(z.name) {
		c.below.set(name, z, known)
	}
	for _, label := range z.labels {
		c.selectors.set(label, z, known)
	}
}

// indexObject makes an object known by its labels and claims, or unknown.
func (c *Cache) indexObject(o *objectEntry, known bool) {
	for label := range labelsOf(o.Object) {
		c.labels.set(label, o, known)
	}
	for claim := range claimsOf(o.Object) {
		c.claims.set(claim, o, known)
	}
	if MayTravel(o.Object) {
		c.offered.set(o.GetNamespace(), o, known)
	}
	if _, ok := o.Object.(*v1alpha1.DNSEndpoint); ok {
		c.endpoints.set(o.GetNamespace(), o, known)
		if o.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation] != "" {
			c.endpoints.set(anyNamespace, o, known)
		}
	}
}

// zonesSelecting yields the zones that select a record; one that does with several labels may come more than once.
func (c *Cache) zonesSelecting(record v1beta1.Record) iter.Seq[*zoneEntry] {
	return func(yield func(*zoneEntry) bool) {
		selecting := func(label labelKey) bool {
			for z := range c.selectors[label] {
				if c.namespaces.selects(z.DNSZone, record) && !yield(z) {
					return false
				}
			}
			return true
		}
		for label := range labelsOf(record) {
			if !selecting(label) || label.label != "" && !selecting(labelKey{namespace: label.namespace, label: label.label, any: true}) {
				return
			}
		}
	}
}

// zoneOfEndpoint walks up from a name, through the zones of the endpoint's own namespace and then through the others.
func (c *Cache) zoneOfEndpoint(e metav1.Object, dnsName string) *zoneEntry {
	name, _ := declaration.EndpointName(dnsName)
	for above := range rrset.NamesUpFrom(name) {
		if z := oldestTaking(c.byOwnName[ownName{e.GetNamespace(), above}], e); z != nil {
			return z
		}
	}
	if e.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation] == "" { // No zone elsewhere takes it.
		return nil
	}
	for above := range rrset.NamesUpFrom(name) {
		if z := oldestTaking(c.byName[above], e); z != nil {
			return z
		}
	}
	return nil
}

// oldestTaking finds the oldest of some zones that takes endpoints of an object, nil if none does.
func oldestTaking(zones map[*zoneEntry]struct{}, e metav1.Object) (oldest *zoneEntry) {
	for z := range zones {
		if MayTakeEndpoints(z.DNSZone, e) && (oldest == nil || compareZones(z.DNSZone, oldest.DNSZone) < 0) {
			oldest = z
		}
	}
	return oldest
}

// lookAtCandidates looks at the objects that may have a role in a zone: those that had one before, those with a label that a selector of it
// requires, those that say that it holds their data, and the DNSEndpoints of the namespaces that it admits. Of these, those alone are
// concerned that have a name in it and that it may take.
func (c *Cache) lookAtCandidates(z *zoneEntry, before map[*objectEntry]Role, look lookFunc) {
	z.settling++
	defer func() { z.settling-- }()
	for o := range before {
		look(o, true)
	}
	lookAt := func(objects map[*objectEntry]struct{}) {
		for o := range objects {
			look(o, true)
		}
	}
	for _, label := range z.labels {
		if label.any { // Records are not known by labels of any value.
			label = labelKey{namespace: label.namespace}
		}
		lookAt(c.labels[label])
	}
	lookAt(c.claims[zoneClaim{z.Namespace, z.Name, ""}])
	lookAt(c.claims[zoneClaim{z.Namespace, "", z.Spec.ZoneName}])
	lookAt(c.claims[zoneClaim{anyNamespace, "", z.Spec.ZoneName}])
	name := hashOf(z.name)
	for namespace := range strings.SplitSeq(z.Namespace+","+z.Annotations[v1beta1.AllowEndpointNamespacesAnnotation], ",") {
		for o := range c.endpoints[strings.TrimSpace(namespace)] {
			_, isIn := slices.BinarySearch(o.names, name)
			look(o, isIn && MayTakeEndpoints(z.DNSZone, o.Object))
		}
	}
}

// namesAbove returns the hashes of all names at and above those of a DNSEndpoint, also former ones, sorted: whoever comes to have a zone need
// not look at thousands of endpoints to know that none has a name in it. A record has none.
func namesAbove(o source.Object) []uint64 {
	e, ok := o.(*v1alpha1.DNSEndpoint)
	if !ok {
		return nil
	}
	seen := map[uint64]struct{}{}
	add := func(dnsName string) {
		name, _ := declaration.EndpointName(dnsName)
		for above := range rrset.NamesUpFrom(name) {
			hash := hashOf(above)
			if _, known := seen[hash]; known {
				return // So are those above.
			}
			seen[hash] = struct{}{}
		}
	}
	for _, endpoint := range e.Spec.Endpoints {
		if endpoint != nil {
			add(endpoint.DNSName)
		}
	}
	for name := range source.FormerNames(e) {
		add(name)
	}
	return slices.Sorted(maps.Keys(seen))
}

var seed = maphash.MakeSeed()

func hashOf(name string) uint64 { return maphash.String(seed, name) }
