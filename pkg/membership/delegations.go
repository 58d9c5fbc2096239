package membership

import (
	"maps"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// delegation is a canonical name below a zone's apex at which the zone has an NSRecord.
type delegation struct {
	zone *zoneEntry
	name string
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

// DelegatesHere reports whether an NSRecord of a zone delegates to the zone's own servers, as far as their names show: to a name
// server that the zone has too, or to one inside the zone. Who delegates to others wants nobody to answer for them here.
func DelegatesHere(ns *v1beta1.NSRecord, zone *v1beta1.DNSZone) bool {
	to, err := source.OwnerName(ns.Spec.Nameserver, zone.Spec.ZoneName)
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
	return isTarget(zone.Spec.SOARecord.PrimaryNS) ||
		slices.ContainsFunc(zone.Spec.NameServers, func(s v1beta1.NameServer) bool { return isTarget(s.Hostname) }) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(zone.Spec.NameServerIPs)), isTarget)
}

// updateDelegation finds an object's delegation anew. If it is another one, it returns the zones of which RefusalOf may be
// another one.
func (c *Cache) updateDelegation(o *objectEntry) []Affected {
	before, nameserver := o.delegation, o.nameserver
	if o.delegation, o.nameserver = delegationOf(o); o.delegation == before && o.nameserver == nameserver {
		return nil
	}
	var affected []Affected
	if before.zone != nil {
		c.delegations.remove(before, o)
		affected = c.zonesBelow(before)
	}
	if o.delegation.zone != nil {
		c.delegations.add(o.delegation, o)
		affected = append(affected, c.zonesBelow(o.delegation)...)
	}
	return affected
}

// delegationOf returns the delegation that an object declares in the zone that it belongs to, and to which name server; zero
// values if it declares none.
func delegationOf(o *objectEntry) (d delegation, nameserver string) {
	ns, ok := o.Object.(*v1beta1.NSRecord)
	if !ok {
		return d, ""
	}
	for _, r := range o.roles {
		if name, err := source.OwnerName(ns.RecordName(), r.zone.Spec.ZoneName); r.role == Selected && err == nil && name != r.zone.name {
			return delegation{r.zone, name}, ns.Spec.Nameserver
		}
	}
	return d, ""
}

// zonesBelow returns the zones at or below a delegated name.
func (c *Cache) zonesBelow(d delegation) []Affected {
	var affected []Affected
	for z := range c.below[d.name] {
		affected = append(affected, Affected{Zone: z.key})
	}
	return affected
}

// youngerZones returns the zones that a zone may keep from being served: the younger ones at or below its name.
func (c *Cache) youngerZones(z *zoneEntry) []Affected {
	var affected []Affected
	for other := range c.below[z.name] {
		if other != z && compareZones(z.DNSZone, other.DNSZone) < 0 {
			affected = append(affected, Affected{Zone: other.key})
		}
	}
	return affected
}
