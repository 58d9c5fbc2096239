package membership

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// SelectsRecord needs both in one namespace and any of the zone's recordsFrom to match the record's labels. A selector that cannot be
// read is an error when no other one matches.
func SelectsRecord(zone *v1beta1.DNSZone, record v1beta1.Record) (bool, error) {
	if zone.Namespace != record.GetNamespace() {
		return false, nil
	}
	labels := record.GetLabels()
	var firstErr error
	for i := range zone.Spec.RecordsFrom {
		ok, err := matchesLabels(&zone.Spec.RecordsFrom[i].Selector, labels)
		if ok {
			return true, nil
		}
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("spec.recordsFrom[%d].selector.%w", i, err)
		}
	}
	return false, firstErr
}

// namespaceLabels are the labels of all namespaces.
type namespaceLabels map[string]map[string]string

// selects reports whether a zone takes a record: SelectsRecord or, of a record of another namespace, both sides consent (admits) by the
// recordsFrom that matches the record's labels.
func (n namespaceLabels) selects(zone *v1beta1.DNSZone, record v1beta1.Record) bool {
	if zone.Namespace == record.GetNamespace() {
		ok, _ := SelectsRecord(zone, record)
		return ok
	}
	return n.admits(zone, record, func(from *v1beta1.RecordSource) bool {
		ok, _ := matchesLabels(&from.Selector, record.GetLabels())
		return ok
	})
}

// admits reports whether a zone and a record of another namespace consent: a namespaceSelector of the zone matches the namespace's labels, in
// a recordsFrom for which `and` holds, and the record's annotation bindy.firestoned.io/allow-zone-namespaces lists the zone's namespace.
func (n namespaceLabels) admits(zone *v1beta1.DNSZone, record v1beta1.Record, and func(*v1beta1.RecordSource) bool) bool {
	labels, exists := n[record.GetNamespace()]
	if !exists || !listsNamespace(record.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation], zone.Namespace) {
		return false
	}
	for i := range zone.Spec.RecordsFrom {
		from := &zone.Spec.RecordsFrom[i]
		if from.NamespaceSelector == nil || !and(from) {
			continue
		}
		if ok, _ := matchesLabels(from.NamespaceSelector, labels); ok {
			return true
		}
	}
	return false
}

// MayTravel reports whether a record consents to zones of other namespaces.
func MayTravel(o source.Object) bool {
	_, record := o.(v1beta1.Record)
	return record && o.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation] != ""
}

// TakesFirst reports whether the first of two zones that both select a record has it.
func TakesFirst(a, b *v1beta1.DNSZone, record v1beta1.Record) bool {
	return compareTaking(a, b, record.GetNamespace()) < 0
}

// compareTaking orders zones that select a record: those of its own namespace come first.
func compareTaking(a, b *v1beta1.DNSZone, namespace string) int {
	switch ownA, ownB := a.Namespace == namespace, b.Namespace == namespace; {
	case ownA && ownB:
		return compareSelecting(a, b)
	case ownA:
		return -1
	case ownB:
		return 1
	}
	return compareZones(a, b)
}

// matchesLabels evaluates a label selector as Kubernetes does, without compiling it first: it runs for every pair of zone
// and object. A selector without requirements matches everything.
func matchesLabels(s *metav1.LabelSelector, labels map[string]string) (bool, error) {
	for key, value := range s.MatchLabels {
		if have, ok := labels[key]; !ok || have != value {
			return false, nil
		}
	}
	for i := range s.MatchExpressions {
		ok, err := meetsRequirement(&s.MatchExpressions[i], labels)
		if err != nil {
			return false, fmt.Errorf("matchExpressions[%d]: %w", i, err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

func meetsRequirement(r *metav1.LabelSelectorRequirement, labels map[string]string) (bool, error) {
	value, exists := labels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(r.Values) == 0 {
			return false, fmt.Errorf("operator %s needs values", r.Operator)
		}
		in := exists && slices.Contains(r.Values, value)
		return in == (r.Operator == metav1.LabelSelectorOpIn), nil
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return false, fmt.Errorf("operator %s takes no values", r.Operator)
		}
		return exists == (r.Operator == metav1.LabelSelectorOpExists), nil
	}
	return false, fmt.Errorf("operator %q is none of In, NotIn, Exists, DoesNotExist", r.Operator)
}
