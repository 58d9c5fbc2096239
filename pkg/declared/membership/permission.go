package membership

import (
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Refusal is why a zone is served nowhere although servers are there: the reason and the message of its Ready condition.
// The message names no object of another namespace. The zero value stands for a zone that is served.
type Refusal = status.Verdict

// Names are the zones and delegations that decide together with a Fleet whether a zone is served. A Cache that has the
// zones and the NSRecords implements it.
type Names interface {
	// ZonesNamed returns the zones of all namespaces that have a DNS name.
	ZonesNamed(name string) []*v1beta1.DNSZone
	// Delegates reports whether a zone has an NSRecord at a canonical name below its own that delegates to its own servers
	// (DelegatesHere).
	Delegates(zone *v1beta1.DNSZone, name string) bool
}

// RefusalOf returns why a zone is not served:
//
//   - A zone with the same name that came first is served on an instance, a cluster-scoped cluster or a DNSProvider that both
//     have: DuplicateZone.
//   - Those who run the servers do not permit it: on servers of another namespace, the ZoneGrants with the longest suffix
//     that covers the name do not list the zone's namespace; or there is none, and the name is a public suffix.
//   - A zone of another namespace that came first is served above it on common servers, and delegates none of the names from
//     there to the zone's: neither by an NSRecord, nor do ZoneGrants by a suffix below that zone.
//
// Who came first is what the statuses of the zones say (arrivalAt); age decides among zones of which none is there yet. Who is
// refused, or going, keeps nobody else from anything.
func (f *Fleet) RefusalOf(zone *v1beta1.DNSZone, names Names) Refusal {
	name, err := declaration.ZoneName(zone.Spec.ZoneName)
	if err != nil {
		return Refusal{}
	}
	var others []*v1beta1.DNSZone
	for above := range rrset.NamesUpFrom(name) {
		others = append(others, names.ZonesNamed(above)...)
	}
	all := f.meeting(zone, others)
	for _, p := range all {
		p.granted, p.denied = f.grantedSuffix(p)
	}
	slices.SortFunc(all, compareUnrecorded)
	for _, p := range all {
		refusal := refuse(p, all, names)
		if p.served = refusal == (Refusal{}); p.DNSZone == zone {
			return refusal
		}
	}
	return Refusal{}
}

// refuse is RefusalOf a zone beside others.
func refuse(p *placedZone, others []*placedZone, names Names) Refusal {
	for _, o := range others {
		if o.name == p.name && o.goesBefore(p) {
			return status.DuplicateOf(o.DNSZone, p.Namespace)
		}
	}
	if p.denied != (Refusal{}) {
		return p.denied
	}
	for _, o := range others {
		if o.Namespace != p.Namespace && isBelow(p.name, o.name) && !isBelow(p.granted, o.name) && o.goesBefore(p) && !delegates(names, o, p.name) {
			return status.BelowOthers(p.name)
		}
	}
	return Refusal{}
}

// delegates reports whether a zone delegates a name below it, or one between.
func delegates(names Names, above *placedZone, name string) bool {
	for below := range rrset.NamesBelow(above.name, name) {
		if names.Delegates(above.DNSZone, below) {
			return true
		}
	}
	return false
}

// isBelow compares canonical names; "" is below none.
func isBelow(name, above string) bool {
	return name != "" && name != above && rrset.IsSubdomain(name, above)
}

// grantedSuffix is the suffix by which grants permit a zone on all of its servers, the shortest if they differ: "" if the zone needs none
// on one of them. Otherwise there is a Refusal.
func (f *Fleet) grantedSuffix(p *placedZone) (string, Refusal) {
	granted := p.name
	for _, group := range p.foreign {
		suffix, permitted := f.longestGrant(p, group)
		switch {
		case suffix == "" && isPublicSuffix(p.name):
			return "", status.IsPublicSuffix(p.name)
		case suffix != "" && !permitted:
			return "", status.NotGranted(p.Namespace, p.name)
		case len(suffix) < len(granted):
			granted = suffix
		}
	}
	if len(p.foreign) == 0 {
		return "", Refusal{}
	}
	return granted, Refusal{}
}

// longestGrant is the longest suffix of the grants that cover a zone's name on servers of another namespace, "" if there is none.
// permitted means that one of these grants lists the zone's namespace.
func (f *Fleet) longestGrant(p *placedZone, group serverGroup) (suffix string, permitted bool) {
	for suffix := range rrset.NamesUpFrom(p.name) {
		covered := false
		for _, grant := range f.grants[suffix] {
			if s := grant.Spec.Servers; s != nil && !slices.Contains(s.Clusters, group.cluster) && !slices.Contains(s.Namespaces, group.namespace) {
				continue
			}
			covered = true
			permitted = permitted || slices.Contains(grant.Spec.Namespaces, "*") || slices.Contains(grant.Spec.Namespaces, p.Namespace)
		}
		if covered {
			return suffix, permitted
		}
	}
	return "", false
}

// isPublicSuffix is true for names directly below which different parties register names (https://publicsuffix.org), and for every name
// of one label.
func isPublicSuffix(name string) bool {
	name = strings.TrimSuffix(name, ".")
	suffix, _ := publicsuffix.PublicSuffix(name)
	return suffix == name
}

// CoversName reports whether a name is at or below a suffix of a grant.
func CoversName(grant *v1beta1.ZoneGrant, name string) bool {
	name, err := rrset.CanonicalName(name)
	return err == nil && slices.ContainsFunc(grant.Spec.Suffixes, func(suffix string) bool {
		suffix, err := rrset.CanonicalName(suffix)
		return err == nil && rrset.IsSubdomain(name, suffix)
	})
}
