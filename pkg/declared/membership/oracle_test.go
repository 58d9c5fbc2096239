package membership

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// zonesSelecting looks at all zones and returns those that select a record, the one that it belongs to first.
func (n namespaceLabels) zonesSelecting(zones []*v1beta1.DNSZone, record v1beta1.Record) []*v1beta1.DNSZone {
	var found []*v1beta1.DNSZone
	for _, zone := range zones {
		if n.selects(zone, record) {
			found = append(found, zone)
		}
	}
	slices.SortFunc(found, func(a, b *v1beta1.DNSZone) int { return compareTaking(a, b, record.GetNamespace()) })
	return found
}

// holderOf looks at all zones and returns the one that may hold data of a record.
func (n namespaceLabels) holderOf(zones []*v1beta1.DNSZone, record v1beta1.Record) *v1beta1.DNSZone {
	var holder *v1beta1.DNSZone
	for claim := range claimsOf(record) {
		for _, zone := range zones {
			if n.holds(claim, record, zone) && (holder == nil || n.prefersHolder(record, zone, holder)) {
				holder = zone
			}
		}
	}
	return holder
}

// zoneOfEndpoint looks at all zones and returns the one that an endpoint belongs to.
func zoneOfEndpoint(zones []*v1beta1.DNSZone, e metav1.Object, dnsName string) *v1beta1.DNSZone {
	name, _ := declaration.EndpointName(dnsName)
	holding := slices.DeleteFunc(slices.Clone(zones), func(zone *v1beta1.DNSZone) bool {
		zoneName, err := declaration.ZoneName(zone.Spec.ZoneName)
		return err != nil || !rrset.IsSubdomain(name, zoneName)
	})
	own := slices.DeleteFunc(slices.Clone(holding), func(zone *v1beta1.DNSZone) bool { return zone.Namespace != e.GetNamespace() })
	if len(own) == 0 {
		own = slices.DeleteFunc(holding, func(zone *v1beta1.DNSZone) bool {
			return !listsNamespace(zone.Annotations[v1beta1.AllowEndpointNamespacesAnnotation], e.GetNamespace()) ||
				!listsNamespace(e.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation], zone.Namespace)
		})
	}
	slices.SortFunc(own, func(a, b *v1beta1.DNSZone) int {
		return cmp.Or(cmp.Compare(len(declaration.DNSName(b)), len(declaration.DNSName(a))), compareZones(a, b))
	})
	return firstOf(own)
}
