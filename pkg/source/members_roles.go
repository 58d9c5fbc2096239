package source

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

func (m *Members) rolesOf(o *member) roles {
	switch object := o.Object.(type) {
	case v1beta1.Record:
		return m.recordRoles(object)
	case *v1alpha1.DNSEndpoint:
		return m.endpointRoles(o, object)
	}
	return nil
}

// recordRoles: the oldest zone that selects a record has it, unless another one still holds data of it.
func (m *Members) recordRoles(record v1beta1.Record) roles {
	var all roles
	var first *memberZone
	for p := range pairsOf(record) {
		for z := range m.selectors[p] {
			if ok, _ := Selects(z.DNSZone, record); !ok {
				continue
			}
			all.set(z, AlsoSelected)
			if first == nil || compareZones(z.DNSZone, first.DNSZone) < 0 {
				first = z
			}
		}
	}
	holder := m.holder(record)
	if record.GetDeletionTimestamp() != nil {
		if holder == nil && hasFinalizer(record) {
			holder = first // It may have been published before anybody could note where.
		}
		all, first = nil, nil
	}
	switch {
	case first == nil:
	case holder != nil && holder != first:
		all.set(first, Contested)
	default:
		all.set(first, Selected)
	}
	if holder != nil && holder != first {
		all.set(holder, Leaving)
	}
	return all
}

// endpointRoles: every endpoint of a DNSEndpoint is in the zone that its name falls into. Where the object says that it
// has data and no endpoint falls any more, it is leaving.
func (m *Members) endpointRoles(o *member, endpoints *v1alpha1.DNSEndpoint) roles {
	var all roles
	outside := false
	place := func(dnsName string, role Role) {
		switch z := m.endpointZone(o.key.Namespace, dnsName); {
		case z == nil:
			outside = true
		case role != NoRole && all.in(z) != Selected:
			all.set(z, role)
		}
	}
	published := NoRole // Without the finalizer nothing went out.
	if hasFinalizer(endpoints) {
		published = Leaving
	}
	wanted := Selected
	if endpoints.DeletionTimestamp != nil {
		wanted = published
	}
	for _, e := range endpoints.Spec.Endpoints {
		if e != nil {
			place(e.DNSName, wanted)
		}
	}
	for name := range formerNames(endpoints) {
		place(name, published)
	}
	for claim := range claimsOf(endpoints) {
		if z := m.zones[claim.zone()]; z != nil && all.in(z) == NoRole {
			all.set(z, Leaving)
		}
	}
	delete(m.outside, o)
	if outside {
		m.outside[o] = struct{}{}
	}
	return all
}

// endpointZone walks up from a name to the first that is a zone's.
func (m *Members) endpointZone(namespace, dnsName string) *memberZone {
	for name, _ := endpointName(dnsName); name != "." && name != ""; name = rrset.Parent(name) {
		var best *memberZone
		for z := range m.byName[name] {
			if AdmitsEndpoints(z.DNSZone, namespace) && (best == nil || closer(z.DNSZone, best.DNSZone, namespace)) {
				best = z
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// HolderOf is the zone that may hold data of a record: its status names it or, as long as the status was not written, its
// annotation does beside our finalizer. Of several zones with the annotation's DNS name it is the one that the record
// belongs to, else the oldest. It is nil when none does.
func HolderOf(zones []*v1beta1.DNSZone, record v1beta1.Record) *v1beta1.DNSZone {
	var holder *v1beta1.DNSZone
	for claim := range claimsOf(record) {
		for _, zone := range zones {
			if claim.names(zone) && (holder == nil || ratherHolds(record, zone, holder)) {
				holder = zone
			}
		}
	}
	return holder
}

func ratherHolds(record v1beta1.Record, a, b *v1beta1.DNSZone) bool {
	selectsA, _ := Selects(a, record)
	selectsB, _ := Selects(b, record)
	if selectsA != selectsB {
		return selectsA
	}
	return compareZones(a, b) < 0
}

// holder is HolderOf of all zones.
func (m *Members) holder(record v1beta1.Record) *memberZone {
	var holder *memberZone
	for claim := range claimsOf(record) {
		if claim.name != "" {
			return m.zones[claim.zone()]
		}
		name, _ := ZoneName(claim.dnsName)
		for z := range m.byName[name] {
			if claim.names(z.DNSZone) && (holder == nil || ratherHolds(record, z.DNSZone, holder.DNSZone)) {
				holder = z
			}
		}
	}
	return holder
}

// claimOn is what an object says about a zone that may hold its data: the zone object's name, or its DNS name as written.
type claimOn struct{ namespace, name, dnsName string }

func (c claimOn) zone() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: c.name}
}

func (c claimOn) names(zone *v1beta1.DNSZone) bool {
	return zone.Namespace == c.namespace && (c.name == zone.Name || c.name == "" && c.dnsName == zone.Spec.ZoneName)
}

// claimsOf yields what an object says: a record at most one thing.
func claimsOf(o Object) iter.Seq[claimOn] {
	return func(yield func(claimOn) bool) {
		switch o := o.(type) {
		case v1beta1.Record:
			ref, stamp := o.GetRecordStatus().ZoneRef, o.GetAnnotations()[v1beta1.ZoneAnnotation]
			if ref != nil {
				yield(claimOn{o.GetNamespace(), ref.Name, ""})
			} else if stamp != "" && hasFinalizer(o) {
				yield(claimOn{o.GetNamespace(), "", stamp})
			}
		case *v1alpha1.DNSEndpoint:
			for _, ref := range o.Status.Zones {
				if !yield(claimOn{ref.Namespace, ref.Name, ""}) {
					return
				}
			}
		}
	}
}

func hasFinalizer(o Object) bool { return slices.Contains(o.GetFinalizers(), v1beta1.Finalizer) }
