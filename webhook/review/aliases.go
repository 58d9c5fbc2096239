package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// maxAliases is how many aliases resolvers follow at least, one after the other.
const maxAliases = 8

// circleTrap returns the trap of an alias that leads in a circle, or through more aliases than resolvers follow. The next of a name is
// the name to which it leads, "" if it is no alias as far as is known.
func circleTrap(field string, key rrset.Key, rdata []string, next func(name string) string) []trap.Found {
	if !rrset.IsAlias(key.Type) || len(rdata) != 1 {
		return nil
	}
	found := func(format string, args ...any) []trap.Found {
		return []trap.Found{trap.New(trap.AliasCircle, field, field+": "+fmt.Sprintf(format, args...))}
	}
	at, target := key.Name, rdata[0]
	if key.Type == dns.TypeDNAME { // It redirects any name below.
		at, target = "name."+at, redirect("name."+at, at, target)
	}
	chain := []string{at}
	for ; target != "" && len(chain) <= maxAliases; target = next(target) {
		again := slices.Contains(chain, target)
		if chain = append(chain, target); again {
			return found("aliases lead in a circle: %s", strings.Join(chain, " -> "))
		}
	}
	if target != "" {
		return found("%s leads through more than %d aliases, and resolvers give up: %s; name the host at their end", at, maxAliases, strings.Join(chain, " -> "))
	}
	return nil
}

// aliases are those of declared zones, by the name of the zone.
type aliases map[string][]*aliasesOfZone

// aliasesOfZone are the names of a zone that lead to others.
type aliasesOfZone struct {
	zone *v1beta1.DNSZone
	apex string
	// aliases are the targets of CNAME records, redirections those of DNAME records.
	aliases, redirections map[string]string
	// cuts are the names that are delegated, names all that there are; names only if there is an alias that is a wildcard.
	cuts, names map[string]bool
}

func (a aliases) add(zone *v1beta1.DNSZone, built *source.Zone) {
	z := &aliasesOfZone{zone: zone, apex: built.Name, aliases: map[string]string{}, redirections: map[string]string{}, cuts: map[string]bool{}}
	wildcards := false
	for key, set := range built.RRsets.All() {
		switch {
		case key.Type == dns.TypeCNAME:
			z.aliases[key.Name] = set.Rdata[0]
			wildcards = wildcards || strings.HasPrefix(key.Name, "*.")
		case key.Type == dns.TypeDNAME:
			z.redirections[key.Name] = set.Rdata[0]
		case key.Type == dns.TypeNS && key.Name != built.Name:
			z.cuts[key.Name] = true
		}
	}
	if wildcards {
		z.names = map[string]bool{z.apex: true}
		for key := range built.RRsets.All() {
			for at := range rrset.NamesBelow(z.apex, key.Name) {
				z.names[at] = true
			}
		}
	}
	a[z.apex] = append(a[z.apex], z)
}

// next returns where a name leads that something in a zone names: "" if it is no alias, or nobody here knows.
func (a aliases) next(from *v1beta1.DNSZone, name string) string {
	for apex := name; apex != ""; apex = rrset.ParentName(apex) {
		if zones := a[apex]; len(zones) > 0 {
			return visible(zones, from).next(name)
		}
	}
	return ""
}

// visible is the one of several zones of one name that those who ask for names in a zone probably see: itself, or one on its servers.
func visible(zones []*aliasesOfZone, from *v1beta1.DNSZone) *aliasesOfZone {
	isOn := func(z *aliasesOfZone) bool {
		return z.zone.Namespace == from.Namespace && z.zone.Spec.ClusterRef == from.Spec.ClusterRef && z.zone.Spec.ClusterProviderRef == from.Spec.ClusterProviderRef
	}
	if i := slices.IndexFunc(zones, func(z *aliasesOfZone) bool { return z.zone == from }); i >= 0 {
		return zones[i]
	}
	return zones[max(slices.IndexFunc(zones, isOn), 0)]
}

func (z *aliasesOfZone) next(name string) string {
	if target, is := z.aliases[name]; is {
		return target
	}
	redirected, encloser := "", z.apex
	for at := range rrset.NamesBelow(z.apex, name) {
		if z.cuts[at] {
			return ""
		}
		if target, is := z.redirections[at]; is && at != name {
			redirected = redirect(name, at, target)
		}
		if encloser == z.apex && z.names[at] {
			encloser = at
		}
	}
	if target, is := z.redirections[z.apex]; is && name != z.apex {
		redirected = redirect(name, z.apex, target)
	}
	if redirected != "" || encloser == name {
		return redirected
	}
	return z.aliases["*."+encloser]
}

// redirect puts a target in place of the end of a name (RFC 6672 section 2.2); "" if that is no name.
func redirect(name, from, to string) string {
	if from != "." {
		name = strings.TrimSuffix(name, from)
	}
	target, err := rrset.CanonicalName(name + strings.TrimPrefix(to, "."))
	if err != nil {
		return ""
	}
	return target
}

// findCircle is circleTrap for a record among those of its zone; of aliases elsewhere, and those by wildcards and DNAME records, it knows nothing.
func findCircle(ctx context.Context, o Objects, zone *v1beta1.DNSZone, record v1beta1.Record, owner string, rdata []string) ([]trap.Found, error) {
	var failed error
	next := func(name string) string {
		target, err := findAlias(ctx, o, zone, record, name)
		failed = errors.Join(failed, err)
		return target
	}
	return circleTrap(declaration.ValueField(record), rrset.Key{Name: owner, Type: declaration.RecordType(record)}, rdata, next), failed
}

// findAlias returns where objects other than the record have a name of the zone lead, "" if it is no alias.
func findAlias(ctx context.Context, o Objects, zone *v1beta1.DNSZone, record v1beta1.Record, name string) (string, error) {
	r, err := newRelatedObjects(o, zone, record)
	if err != nil || !rrset.IsSubdomain(name, r.apex) {
		return "", err
	}
	if err := r.collectAt(ctx, name, dns.TypeCNAME); err != nil {
		return "", err
	}
	alias := rrset.Key{Name: name, Type: dns.TypeCNAME}
	for _, other := range r.records {
		if at, rdata, err := r.read(other); err == nil && at == alias {
			return rdata[0], nil
		}
	}
	for _, parts := range r.endpoints {
		for _, endpoint := range parts {
			if at, rdata, err := declaration.EndpointData(endpoint); err == nil && at == alias {
				return rdata[0], nil
			}
		}
	}
	return "", nil
}
