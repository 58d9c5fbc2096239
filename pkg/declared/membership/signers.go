package membership

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// A signed zone asks the zones that delegate it for DS records, by its status, which nobody but the controller writes: it has the UIDs of
// those zones, which SigningParents chooses. What SignersOf gives a zone depends on that alone, so that all who ask see the same.

// request is what a signed zone asks zones above it for.
type request struct {
	parents []types.UID
	records []string
}

// requestOf is what a zone asks for; nothing if it is not served, or going.
func requestOf(zone *v1beta1.DNSZone) (r request) {
	if zone.Status.DNSSEC == nil || zone.Status.DNSSEC.Delegation == nil || v1beta1.IsGoing(zone) || !Servable(zone) {
		return r
	}
	if r.records = zone.Status.DNSSEC.Delegation.Published(); len(r.records) > 0 {
		r.parents = zone.Status.DNSSEC.Delegation.Parents
	}
	return r
}

func (r request) equal(o request) bool {
	return slices.Equal(r.parents, o.parents) && slices.Equal(r.records, o.records)
}

// SignersOf are the signed zones that ask a zone for DS records and that it delegates to their name servers, by name. Of several of one name
// it is the oldest. What a zone was told to ask for may be old, if it is paused: a name that is delegated anew gets no DS records of it.
func (c *Cache) SignersOf(zone *v1beta1.DNSZone) []source.Signer {
	c.mu.RLock()
	defer c.mu.RUnlock()
	asking := slices.SortedFunc(maps.Keys(c.requests[zone.UID]), func(a, b *zoneEntry) int {
		return cmp.Or(cmp.Compare(a.name, b.name), compareZones(a.DNSZone, b.DNSZone))
	})
	var signers []source.Signer
	for _, z := range asking {
		if len(signers) > 0 && signers[len(signers)-1].Name == z.name || !isBelow(z.name, canonicalName(zone)) || !c.hasDelegation(zone, z.DNSZone) {
			continue
		}
		if s, ok := source.NewSigner(z.name, z.request.records); ok {
			signers = append(signers, s)
		}
	}
	return signers
}

func canonicalName(zone *v1beta1.DNSZone) string {
	name, _ := declaration.ZoneName(zone.Spec.ZoneName)
	return name
}

// updateRequest finds what a zone asks for anew, and returns the zones that it asks, or has asked, if that is something else. c.mu is held.
func (c *Cache) updateRequest(z *zoneEntry, now request) []Affected {
	before := z.request
	if before.equal(now) {
		return nil
	}
	for _, uid := range before.parents {
		c.requests.remove(uid, z)
	}
	for _, uid := range now.parents {
		c.requests.add(uid, z)
	}
	z.request = now
	var affected []Affected
	for above := range rrset.NamesUpFrom(z.name) {
		for p := range c.byName[above] {
			if p != z && (slices.Contains(before.parents, p.UID) || slices.Contains(now.parents, p.UID)) {
				affected = append(affected, Affected{Zone: p.key})
			}
		}
	}
	return affected
}

// SigningParents are the zones that may have DS records of a zone by themselves: those that delegate its name to its name servers, by
// NSRecords of their own namespace. They have the longest name of all zones above it that are served in its namespace or on its servers.
// Both sides consent:
//
//   - A zone of another namespace has to share servers with it, where nobody else can have the zone's name, and has to delegate to its own
//     servers (DelegatesHere).
//   - In one namespace either is enough: common servers, or that it is the only zone of its name there.
func (f *Fleet) SigningParents(zone *v1beta1.DNSZone, names *Cache) []*v1beta1.DNSZone {
	name := canonicalName(zone)
	if name == "" || v1beta1.IsGoing(zone) || f.RefusalOf(zone, names) != (Refusal{}) {
		return nil
	}
	for above := range rrset.NamesUpFrom(rrset.ParentName(name)) {
		var served, delegating []*v1beta1.DNSZone
		for _, parent := range names.ZonesNamed(above) {
			if v1beta1.IsGoing(parent) || !f.isBeside(parent, zone) || f.RefusalOf(parent, names) != (Refusal{}) {
				continue
			}
			served = append(served, parent)
			if names.delegatesTo(parent, zone) && !f.isAmbiguous(parent, zone, names) {
				delegating = append(delegating, parent)
			}
		}
		if len(served) > 0 {
			slices.SortFunc(delegating, compareZones)
			return delegating[:min(len(delegating), maxParents)]
		}
	}
	return nil
}

// maxParents is how many zones of one name a zone asks.
const maxParents = 16

// isBeside reports whether a zone is in the namespace of another one or on servers of it.
func (f *Fleet) isBeside(parent, zone *v1beta1.DNSZone) bool {
	return parent.Namespace == zone.Namespace || f.Share(parent, zone)
}

// isAmbiguous reports whether a delegation may be meant for another zone of the same name.
func (f *Fleet) isAmbiguous(parent, zone *v1beta1.DNSZone, names Names) bool {
	if f.Share(parent, zone) {
		return false
	}
	return slices.ContainsFunc(names.ZonesNamed(zone.Spec.ZoneName), func(other *v1beta1.DNSZone) bool {
		return KeyOfZone(other) != KeyOfZone(zone) && !v1beta1.IsGoing(other) && f.isBeside(parent, other)
	})
}

// delegatesTo reports whether a zone has NSRecords at the name of another one, to none but name servers of that.
func (c *Cache) delegatesTo(parent, zone *v1beta1.DNSZone) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.hasDelegation(parent, zone)
}

// hasDelegation is delegatesTo with c.mu held.
func (c *Cache) hasDelegation(parent, zone *v1beta1.DNSZone) bool {
	records := c.delegations[delegation{c.zones[KeyOfZone(parent)], canonicalName(zone)}]
	servers := nameServersOf(zone)
	for o := range records {
		ns := o.Object.(*v1beta1.NSRecord)
		host, err := declaration.HostName(ns.Spec.Nameserver, parent.Spec.ZoneName)
		if err != nil || !slices.Contains(servers, host) || parent.Namespace != zone.Namespace && !DelegatesHere(ns, parent) {
			return false
		}
	}
	return len(records) > 0
}

// nameServersOf are the canonical names of a zone's own name servers.
func nameServersOf(zone *v1beta1.DNSZone) (servers []string) {
	names := slices.Collect(maps.Keys(zone.Spec.NameServerIPs))
	for _, s := range zone.Spec.NameServers {
		names = append(names, s.Hostname)
	}
	if !zone.Spec.SOARecord.HiddenPrimary {
		names = append(names, zone.Spec.SOARecord.PrimaryNS)
	}
	for _, name := range names {
		if host, err := declaration.HostName(name, zone.Spec.ZoneName); err == nil {
			servers = append(servers, host)
		}
	}
	return servers
}
