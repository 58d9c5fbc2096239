package webhook

import (
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// zoneIndex finds zones by their DNS name, and those that may select a record, without a look at all others: a namespace
// may hold thousands. An informer keeps it (it is a ResourceEventHandler). It is safe for concurrent use, and the zones
// that it gives are the informer's: not to be changed.
type zoneIndex struct {
	mu         sync.RWMutex
	known      map[types.NamespacedName]placed
	namespaces map[string]int // how many zones each has
	named      map[string]zoneSet
	selecting  map[labelIn]zoneSet
}

type zoneSet map[types.NamespacedName]*v1beta1.DNSZone

// placed is a zone and where the index has it.
type placed struct {
	name   string
	labels []labelIn
}

// labelIn is a label of the records of a namespace: with this value, or with any. Without a key it stands for all records
// of the namespace.
type labelIn struct {
	namespace, key, value string
	any                   bool
}

func newZoneIndex() *zoneIndex {
	return &zoneIndex{
		known: map[types.NamespacedName]placed{}, namespaces: map[string]int{},
		named: map[string]zoneSet{}, selecting: map[labelIn]zoneSet{},
	}
}

// OnAdd implements toolscache.ResourceEventHandler.
func (x *zoneIndex) OnAdd(obj any, _ bool) {
	if zone, ok := obj.(*v1beta1.DNSZone); ok {
		x.set(zone)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (x *zoneIndex) OnUpdate(_, obj any) { x.OnAdd(obj, false) }

// OnDelete implements toolscache.ResourceEventHandler.
func (x *zoneIndex) OnDelete(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if zone, ok := obj.(*v1beta1.DNSZone); ok {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.forget(keyOf(zone))
	}
}

func (x *zoneIndex) set(zone *v1beta1.DNSZone) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := keyOf(zone)
	x.forget(key)
	p := placed{name: source.DNSName(zone)}
	for i := range zone.Spec.RecordsFrom {
		p.labels = append(p.labels, x.rarest(zone.Namespace, &zone.Spec.RecordsFrom[i].Selector)...)
	}
	x.known[key] = p
	x.namespaces[key.Namespace]++
	put(x.named, p.name, key, zone)
	for _, label := range p.labels {
		put(x.selecting, label, key, zone)
	}
}

func (x *zoneIndex) forget(key types.NamespacedName) {
	p, ok := x.known[key]
	if !ok {
		return
	}
	delete(x.known, key)
	if x.namespaces[key.Namespace]--; x.namespaces[key.Namespace] == 0 {
		delete(x.namespaces, key.Namespace)
	}
	remove(x.named, p.name, key)
	for _, label := range p.labels {
		remove(x.selecting, label, key)
	}
}

// rarest gives labels of which every record that the selector matches has at least one, and which as few other zones as
// possible are found by: the selectors of many zones share a label such as env=prod and differ in another.
func (x *zoneIndex) rarest(namespace string, s *metav1.LabelSelector) []labelIn {
	all := []labelIn{{namespace: namespace}}
	best, least := all, -1
	for _, labels := range demands(namespace, s) {
		zones := 0
		for _, label := range labels {
			zones += len(x.selecting[label])
		}
		if least < 0 || zones < least {
			best, least = labels, zones
		}
	}
	return best
}

// demands are the requirements of a selector that name labels which a record must have one of.
func demands(namespace string, s *metav1.LabelSelector) [][]labelIn {
	var demands [][]labelIn
	for key, value := range s.MatchLabels {
		demands = append(demands, []labelIn{{namespace: namespace, key: key, value: value}})
	}
	for _, r := range s.MatchExpressions {
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			labels := make([]labelIn, 0, len(r.Values))
			for _, value := range r.Values {
				labels = append(labels, labelIn{namespace: namespace, key: r.Key, value: value})
			}
			demands = append(demands, labels)
		case metav1.LabelSelectorOpExists:
			demands = append(demands, []labelIn{{namespace: namespace, key: r.Key, any: true}})
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist: // A record without the label meets these.
		}
	}
	return demands
}

// zoneOf is the zone that takes the record, as source.ZoneOf of all zones would say; nil when none does.
func (x *zoneIndex) zoneOf(record v1beta1.Record) *v1beta1.DNSZone {
	namespace := record.GetNamespace()
	wanted := []labelIn{{namespace: namespace}}
	for key, value := range record.GetLabels() {
		wanted = append(wanted, labelIn{namespace: namespace, key: key, value: value}, labelIn{namespace: namespace, key: key, any: true})
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var candidates []*v1beta1.DNSZone
	for _, label := range wanted {
		for _, zone := range x.selecting[label] {
			candidates = append(candidates, zone)
		}
	}
	return source.ZoneOf(candidates, record)
}

// endpointZone is the zone that takes a name in a DNSEndpoint of the namespace, as source.EndpointZone of all zones would
// say; nil when none does.
func (x *zoneIndex) endpointZone(namespace, dnsName string) *v1beta1.DNSZone {
	x.mu.RLock()
	defer x.mu.RUnlock()
	suffix, more := strings.ToLower(strings.TrimSuffix(dnsName, ".")), true
	for more {
		var candidates []*v1beta1.DNSZone
		for _, zone := range x.named[suffix] {
			candidates = append(candidates, zone)
		}
		if zone := source.EndpointZone(candidates, namespace, dnsName); zone != nil {
			return zone
		}
		_, suffix, more = strings.Cut(suffix, ".")
	}
	return nil
}

// hasZones tells whether there is any zone in the namespace.
func (x *zoneIndex) hasZones(namespace string) bool { return x.zones(namespace) > 0 }

// zones is how many zones there are in the namespace or, without one, in all.
func (x *zoneIndex) zones(namespace string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if namespace == "" {
		return len(x.known)
	}
	return x.namespaces[namespace]
}

// zonesNamed are the zones of all namespaces that have this DNS name, however it is written.
func (x *zoneIndex) zonesNamed(zoneName string) []*v1beta1.DNSZone {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var zones []*v1beta1.DNSZone
	for _, zone := range x.named[dnsName(zoneName)] {
		zones = append(zones, zone)
	}
	return zones
}

// zoneWhere is any zone of which something is true, nil when there is none. It looks at all of them.
func (x *zoneIndex) zoneWhere(is func(*v1beta1.DNSZone) bool) *v1beta1.DNSZone {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, zones := range x.named {
		for _, zone := range zones {
			if is(zone) {
				return zone
			}
		}
	}
	return nil
}

// dnsName is a name of a zone as the index has it.
func dnsName(zoneName string) string {
	return source.DNSName(&v1beta1.DNSZone{Spec: v1beta1.DNSZoneSpec{ZoneName: zoneName}})
}

func keyOf(zone *v1beta1.DNSZone) types.NamespacedName {
	return types.NamespacedName{Namespace: zone.Namespace, Name: zone.Name}
}

func put[K comparable](sets map[K]zoneSet, at K, key types.NamespacedName, zone *v1beta1.DNSZone) {
	if sets[at] == nil {
		sets[at] = zoneSet{}
	}
	sets[at][key] = zone
}

func remove[K comparable](sets map[K]zoneSet, at K, key types.NamespacedName) {
	if delete(sets[at], key); len(sets[at]) == 0 {
		delete(sets, at)
	}
}
