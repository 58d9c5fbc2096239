package membership

import (
	"cmp"
	"iter"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// zoneClaim is what an object says about a zone that may hold its data: the zone object's name, or its DNS name as
// written.
type zoneClaim struct{ namespace, name, dnsName string }

func (c zoneClaim) zone() ZoneKey { return ZoneKey{Namespace: c.namespace, Name: c.name} }

func (c zoneClaim) matches(zone *v1beta1.DNSZone) bool {
	return zone.Namespace == c.namespace && (c.name == zone.Name || c.name == "" && c.dnsName == zone.Spec.ZoneName)
}

// holds reports whether a claim of a record is about a zone. One of anyNamespace is about the zones of other namespaces that admit the
// record: everybody may write an annotation.
func (n namespaceLabels) holds(claim zoneClaim, record v1beta1.Record, zone *v1beta1.DNSZone) bool {
	if claim.namespace != anyNamespace {
		return claim.matches(zone)
	}
	return claim.dnsName == zone.Spec.ZoneName && zone.Namespace != record.GetNamespace() &&
		n.admits(zone, record, func(*v1beta1.RecordSource) bool { return true })
}

// claimsOf yields the claims of an object. Of a record its status makes one or, as long as the status was not written, its annotation
// beside our finalizer: about a zone of its namespace and, if it may travel, about those of others.
func claimsOf(o source.Object) iter.Seq[zoneClaim] {
	return func(yield func(zoneClaim) bool) {
		switch o := o.(type) {
		case v1beta1.Record:
			ref, stamp := o.GetRecordStatus().ZoneRef, o.GetAnnotations()[v1beta1.ZoneAnnotation]
			if ref != nil {
				yield(zoneClaim{cmp.Or(ref.Namespace, o.GetNamespace()), ref.Name, ""})
			} else if stamp != "" && hasFinalizer(o) && yield(zoneClaim{o.GetNamespace(), "", stamp}) && MayTravel(o) {
				yield(zoneClaim{anyNamespace, "", stamp})
			}
		case *v1alpha1.DNSEndpoint:
			for _, ref := range o.Status.Zones {
				if !yield(zoneClaim{ref.Namespace, ref.Name, ""}) {
					return
				}
			}
		}
	}
}

// holderOf is the zone that may hold data of a record, nil when none does. Of several zones with the DNS name that the record's
// annotation has, it is the one that the record belongs to, else the oldest.
func (c *Cache) holderOf(record v1beta1.Record) *zoneEntry {
	var holder *zoneEntry
	for claim := range claimsOf(record) {
		if claim.name != "" {
			return c.zones[claim.zone()]
		}
		name, _ := declaration.ZoneName(claim.dnsName)
		for z := range c.byName[name] {
			if c.namespaces.holds(claim, record, z.DNSZone) && (holder == nil || c.namespaces.prefersHolder(record, z.DNSZone, holder.DNSZone)) {
				holder = z
			}
		}
	}
	return holder
}

func (n namespaceLabels) prefersHolder(record v1beta1.Record, a, b *v1beta1.DNSZone) bool {
	if selectsA := n.selects(a, record); selectsA != n.selects(b, record) {
		return selectsA
	}
	return compareZones(a, b) < 0
}

func hasFinalizer(o source.Object) bool { return slices.Contains(o.GetFinalizers(), v1beta1.Finalizer) }
