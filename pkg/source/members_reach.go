package source

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// index finds values by keys; several values may have one key.
type index[K, V comparable] map[K]map[V]struct{}

func (x index[K, V]) add(key K, value V) {
	if x[key] == nil {
		x[key] = map[V]struct{}{}
	}
	x[key][value] = struct{}{}
}

func (x index[K, V]) remove(key K, value V) {
	if delete(x[key], value); len(x[key]) == 0 {
		delete(x, key)
	}
}

// pair is a label with its value in a namespace. Without a label it stands for every record of the namespace.
type pair struct{ namespace, label, value string }

// pairsOf yields the pairs that a record has; a DNSEndpoint has none.
func pairsOf(o Object) iter.Seq[pair] {
	return func(yield func(pair) bool) {
		if _, ok := o.(v1beta1.Record); !ok || !yield(pair{namespace: o.GetNamespace()}) {
			return
		}
		for label, value := range o.GetLabels() {
			if !yield(pair{o.GetNamespace(), label, value}) {
				return
			}
		}
	}
}

// demands are pairs of which every record has one that any selector of a zone matches: as few records as possible have
// them.
func demands(zone *v1beta1.DNSZone) []pair {
	var all []pair
	for i := range zone.Spec.RecordsFrom {
		all = append(all, demandsOf(zone.Namespace, &zone.Spec.RecordsFrom[i].Selector)...)
	}
	return all
}

func demandsOf(namespace string, s *metav1.LabelSelector) []pair {
	if len(s.MatchLabels) > 0 {
		label := slices.Min(slices.Collect(maps.Keys(s.MatchLabels)))
		return []pair{{namespace, label, s.MatchLabels[label]}}
	}
	for _, e := range s.MatchExpressions {
		if e.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		var all []pair
		for _, value := range e.Values {
			all = append(all, pair{namespace, e.Key, value})
		}
		return all
	}
	return []pair{{namespace: namespace}}
}

// include adds a zone to the indexes, exclude removes it.
func (m *Members) include(z *memberZone) {
	if name, err := ZoneName(z.Spec.ZoneName); err == nil {
		m.byName.add(name, z)
	}
	for _, p := range demands(z.DNSZone) {
		m.selectors.add(p, z)
	}
}

func (m *Members) exclude(z *memberZone) {
	if name, err := ZoneName(z.Spec.ZoneName); err == nil {
		m.byName.remove(name, z)
	}
	for _, p := range demands(z.DNSZone) {
		m.selectors.remove(p, z)
	}
}

// reach are the objects that a zone may have a role for: those that it has now, those with a label that a selector of it
// demands, those that say that it holds their data, and the DNSEndpoints that a zone above it has or none.
func (m *Members) reach(z *memberZone) map[*member]Role {
	found := maps.Clone(z.objects)
	for _, p := range demands(z.DNSZone) {
		addTo(found, maps.Keys(m.labels[p]))
	}
	addTo(found, maps.Keys(m.claims[claimOn{z.Namespace, z.Name, ""}]))
	addTo(found, maps.Keys(m.claims[claimOn{z.Namespace, "", z.Spec.ZoneName}]))
	addTo(found, maps.Keys(m.outside))
	name, err := ZoneName(z.Spec.ZoneName)
	for ; err == nil && name != "."; name = rrset.Parent(name) {
		for above := range m.byName[name] {
			for o := range above.objects {
				if o.key.Kind == EndpointKind {
					found[o] = NoRole
				}
			}
		}
	}
	return found
}

func addTo(found map[*member]Role, objects iter.Seq[*member]) {
	for o := range objects {
		found[o] = NoRole
	}
}

// sameReach tells whether a zone may have a role for the same objects as before.
func sameReach(a, b *v1beta1.DNSZone) bool {
	return a.Spec.ZoneName == b.Spec.ZoneName && a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		a.Annotations[v1beta1.AllowEndpointNamespacesAnnotation] == b.Annotations[v1beta1.AllowEndpointNamespacesAnnotation] &&
		equality.Semantic.DeepEqual(a.Spec.RecordsFrom, b.Spec.RecordsFrom)
}

// sameWanted tells whether nothing of an object has changed that a pass over its zone looks at: its status has not a part
// in that, but for what it says about where its data is.
func sameWanted(a, b Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && hasFinalizer(a) == hasFinalizer(b) &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}
