package membership

import (
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// delegation is a canonical name below a zone's apex at which the zone has an NSRecord.
type delegation struct {
	zone *zoneEntry
	name string
}

// Delegates reports whether a zone has an NSRecord at a canonical name below its own.
func (c *Cache) Delegates(zone *v1beta1.DNSZone, name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.delegations[delegation{c.zones[KeyOfZone(zone)], name}]) > 0
}

// updateDelegation finds an object's delegation anew. If it is another one, it returns the zones of which RefusalOf may be
// another one.
func (c *Cache) updateDelegation(o *objectEntry) []Affected {
	before := o.delegation
	if o.delegation = delegationOf(o); o.delegation == before {
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

// delegationOf returns the delegation that an object declares in the zone that it belongs to; the zero value if it declares
// none.
func delegationOf(o *objectEntry) delegation {
	ns, ok := o.Object.(*v1beta1.NSRecord)
	if !ok {
		return delegation{}
	}
	for _, r := range o.roles {
		if name, err := source.OwnerName(ns.RecordName(), r.zone.Spec.ZoneName); r.role == Selected && err == nil && name != r.zone.name {
			return delegation{r.zone, name}
		}
	}
	return delegation{}
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
