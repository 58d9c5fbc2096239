package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// ZonesFor lists the zones that select a record, the one that it belongs to first: the oldest by creationTimestamp, then
// UID. A zone with a selector that cannot be read selects with its others.
func ZonesFor(zones []*v1beta1.DNSZone, record v1beta1.Record) []*v1beta1.DNSZone {
	var found []*v1beta1.DNSZone
	for _, zone := range zones {
		if ok, _ := Selects(zone, record); ok {
			found = append(found, zone)
		}
	}
	slices.SortFunc(found, compareZones)
	return found
}

// ZoneOf is the zone that a record belongs to, the first of ZonesFor, or nil when none selects it.
func ZoneOf(zones []*v1beta1.DNSZone, record v1beta1.Record) *v1beta1.DNSZone {
	var first *v1beta1.DNSZone
	for _, zone := range zones {
		if first != nil && compareZones(first, zone) <= 0 {
			continue
		}
		if ok, _ := Selects(zone, record); ok {
			first = zone
		}
	}
	return first
}

// Duplicate gives the oldest zone that is older than the given one, has the same DNS name and shares an instance with
// it, or nil when there is none. That zone is served; the given one is not. Zones without instances are on no server and
// duplicates of nothing.
func Duplicate(zone *v1beta1.DNSZone, zones []*v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) *v1beta1.DNSZone {
	name, err := rrset.CanonicalName(zone.Spec.ZoneName)
	if err != nil {
		return nil
	}
	var first *v1beta1.DNSZone
	for _, other := range zones {
		if other.UID == zone.UID || compareZones(other, zone) >= 0 || (first != nil && compareZones(other, first) >= 0) {
			continue
		}
		otherName, err := rrset.CanonicalName(other.Spec.ZoneName)
		if err == nil && otherName == name && shareInstance(zone, other, instances) {
			first = other
		}
	}
	return first
}

func shareInstance(a, b *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) bool {
	return slices.ContainsFunc(instances, func(i *v1beta1.Bind9Instance) bool {
		return serves(i, a) && serves(i, b)
	})
}

// compareZones orders zones from the oldest.
func compareZones(a, b *v1beta1.DNSZone) int {
	return cmp.Or(compareAge(a.CreationTimestamp, b.CreationTimestamp), cmp.Compare(a.UID, b.UID),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// DNSName is a zone's DNS name in lower case and without the final dot: what zones of the same name have in common,
// however it is written.
func DNSName(zone *v1beta1.DNSZone) string {
	return strings.ToLower(strings.TrimSuffix(zone.Spec.ZoneName, "."))
}
