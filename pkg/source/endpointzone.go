package source

import (
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// AdmitsEndpoints tells whether DNSEndpoints of a namespace may publish in a zone: those of the zone's own namespace may,
// and those of namespaces that the zone's annotation bindy.firestoned.io/allow-endpoint-namespaces names.
func AdmitsEndpoints(zone *v1beta1.DNSZone, namespace string) bool {
	return zone.Namespace == namespace || lists(zone.Annotations[v1beta1.AllowEndpointNamespacesAnnotation], namespace)
}

// EndpointZone is the zone that an endpoint of a DNSEndpoint in a namespace belongs to: of the zones that admit the
// namespace, the one with the longest name that the endpoint's dnsName is or ends in, label by label. Of several zones
// with that name it is the one of the endpoint's own namespace, else the oldest. It is nil when there is none. A zone
// whose name cannot be read takes no endpoints. A dnsName that is no DNS name belongs to the zone that it ends in.
func EndpointZone(zones []*v1beta1.DNSZone, namespace, dnsName string) *v1beta1.DNSZone {
	name, _ := endpointName(dnsName)
	var best *v1beta1.DNSZone
	longest := ""
	for _, zone := range zones {
		zoneName, err := ZoneName(zone.Spec.ZoneName)
		if err != nil || len(zoneName) < len(longest) || !rrset.IsSubdomain(name, zoneName) || !AdmitsEndpoints(zone, namespace) {
			continue
		}
		if len(zoneName) > len(longest) || closer(zone, best, namespace) {
			best, longest = zone, zoneName
		}
	}
	return best
}

// closer tells whether an endpoint of a namespace rather belongs to a than to b, two zones of one name.
func closer(a, b *v1beta1.DNSZone, namespace string) bool {
	if own := a.Namespace == namespace; own != (b.Namespace == namespace) {
		return own
	}
	return compareZones(a, b) < 0
}

// lists tells whether a comma-separated list names a namespace or is "*".
func lists(list, namespace string) bool {
	for list != "" {
		var entry string
		entry, list, _ = strings.Cut(list, ",")
		if entry = strings.TrimSpace(entry); entry == "*" || entry == namespace {
			return true
		}
	}
	return false
}
