package membership

import (
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// zonesSelecting looks at all zones and returns those that select a record, the one that it belongs to first.
func zonesSelecting(zones []*v1beta1.DNSZone, record v1beta1.Record) []*v1beta1.DNSZone {
	var found []*v1beta1.DNSZone
	for _, zone := range zones {
		if ok, _ := SelectsRecord(zone, record); ok {
			found = append(found, zone)
		}
	}
	slices.SortFunc(found, compareZones)
	return found
}

// holderOf looks at all zones and returns the one that may hold data of a record.
func holderOf(zones []*v1beta1.DNSZone, record v1beta1.Record) *v1beta1.DNSZone {
	var holder *v1beta1.DNSZone
	for claim := range claimsOf(record) {
		for _, zone := range zones {
			if claim.matches(zone) && (holder == nil || prefersHolder(record, zone, holder)) {
				holder = zone
			}
		}
	}
	return holder
}

// zoneOfEndpoint looks at all zones and returns the one that an endpoint belongs to.
func zoneOfEndpoint(zones []*v1beta1.DNSZone, namespace, dnsName string) *v1beta1.DNSZone {
	name, _ := source.EndpointName(dnsName)
	var best *v1beta1.DNSZone
	longest := ""
	for _, zone := range zones {
		zoneName, err := source.ZoneName(zone.Spec.ZoneName)
		if err != nil || len(zoneName) < len(longest) || !rrset.IsSubdomain(name, zoneName) || !AdmitsEndpoints(zone, namespace) {
			continue
		}
		if len(zoneName) > len(longest) || prefersZone(zone, best, namespace) {
			best, longest = zone, zoneName
		}
	}
	return best
}
