package membership

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// delegation is a canonical name below a zone's apex at which the zone has an NSRecord.
type delegation struct {
	zone *zoneEntry
	name string
}

// delegatedName is a delegation with the name server that an NSRecord names.
type delegatedName struct {
	delegation
	nameserver string
}

// Delegates reports whether a zone has an NSRecord at a canonical name below its own that delegates to its own servers.
func (c *Cache) Delegates(zone *v1beta1.DNSZone, name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for o := range c.delegations[delegation{c.zones[KeyOfZone(zone)], name}] {
		if DelegatesHere(o.Object.(*v1beta1.NSRecord), zone) {
			return true
		}
	}
	return false
}

// DelegatesHere reports whether an NSRecord of a zone delegates to the zone's own servers, as far as their names show: to a name server
// that the zone has too, or to one inside the zone. Who delegates to others wants nobody to answer for them here.
func DelegatesHere(ns *v1beta1.NSRecord, zone *v1beta1.DNSZone) bool {
	to, err := declaration.OwnerName(ns.Spec.Nameserver, zone.Spec.ZoneName)
	if err == nil || ns.Spec.Nameserver == "" {
		return true
	}
	if to, err = rrset.CanonicalName(ns.Spec.Nameserver); err != nil {
		return false
	}
	isTarget := func(host string) bool {
		name, err := rrset.CanonicalName(host)
		return err == nil && name == to
	}
	return !zone.Spec.SOARecord.HiddenPrimary && isTarget(zone.Spec.SOARecord.PrimaryNS) ||
		slices.ContainsFunc(zone.Spec.NameServers, func(s v1beta1.NameServer) bool { return isTarget(s.Hostname) }) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(zone.Spec.NameServerIPs)), isTarget)
}

// updateDelegation finds an object's delegation anew. If it is another one, it returns the zones of which RefusalOf may be
// another one.
func (c *Cache) updateDelegation(o *objectEntry) []Affected {
	before, after := o.delegates, delegatedNameOf(o)
	if before == after || before != nil && after != nil && *before == *after {
		return nil
	}
	o.delegates = after
	var affected []Affected
	if before != nil {
		c.delegations.remove(before.delegation, o)
		affected = append(affected, Affected{By: before.zone.DNSZone, Below: before.name})
	}
	if after != nil {
		c.delegations.add(after.delegation, o)
		affected = append(affected, Affected{By: after.zone.DNSZone, Below: after.name})
	}
	return affected
}

// delegatedNameOf is nil if an object delegates nothing in the zone that it belongs to. An NSRecord of another namespace permits nobody to
// have a zone there: that is for the zone's own namespace to say.
func delegatedNameOf(o *objectEntry) *delegatedName {
	ns, ok := o.Object.(*v1beta1.NSRecord)
	if !ok {
		return nil
	}
	for _, r := range o.roles {
		if name, err := declaration.OwnerName(ns.RecordName(), r.zone.Spec.ZoneName); r.role == Selected && r.zone.Namespace == ns.Namespace && err == nil && name != r.zone.name {
			return &delegatedName{delegation{r.zone, name}, ns.Spec.Nameserver}
		}
	}
	return nil
}

// SameStanding reports whether a change of a zone cannot refuse other zones, or permit them.
func SameStanding(a, b *v1beta1.DNSZone) bool {
	const consent = v1beta1.AllowInstanceNamespacesAnnotation
	return a.Annotations[consent] == b.Annotations[consent] && v1beta1.IsGoing(a) == v1beta1.IsGoing(b) &&
		equality.Semantic.DeepEqual(placesAndServers(a), placesAndServers(b)) && sameArrivals(a, b)
}

// placesAndServers is where a zone's specification has it served, and its name servers, by which its delegations are judged.
func placesAndServers(z *v1beta1.DNSZone) []any {
	spec := &z.Spec
	return []any{
		spec.ClusterRef, spec.ClusterProviderRef, spec.Bind9InstancesFrom, spec.ProviderRefs,
		spec.NameServers, spec.NameServerIPs, spec.SOARecord.PrimaryNS, spec.SOARecord.HiddenPrimary,
	}
}

// sameArrivals reports whether a zone that is where it was came there when it did (arrivalAt).
func sameArrivals(a, b *v1beta1.DNSZone) bool {
	if a.Status.Arrivals != nil && b.Status.Arrivals != nil {
		return equality.Semantic.DeepEqual(a.Status.Arrivals, b.Status.Arrivals)
	}
	return (a.Status.Arrivals == nil) == (b.Status.Arrivals == nil) && isNew(a) == isNew(b) && IsRefused(a) == IsRefused(b) &&
		(a.Status.ObservedGeneration > 0) == (b.Status.ObservedGeneration > 0) &&
		equality.Semantic.DeepEqual(a.Status.Bind9Instances, b.Status.Bind9Instances) && equality.Semantic.DeepEqual(a.Status.Providers, b.Status.Providers)
}
