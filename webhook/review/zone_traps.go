package review

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// addZoneTraps adds to results the traps that depend on all of a zone: hosts that are aliases, in whichever zone, aliases that lead in a circle, name
// servers without addresses, and several policies or TTLs of one name. Once an object is applied, its condition has the same remarks about hosts.
func addZoneTraps(members *membership.Cache, all []client.Object, results []Result) {
	places := map[source.ObjectKey]int{}
	content := map[*v1beta1.DNSZone][]source.Object{}
	var zones []*v1beta1.DNSZone
	for i, o := range all {
		object, ok := o.(source.Object)
		if !ok {
			continue
		}
		for _, zone := range zonesOf(members, o) {
			places[source.KeyOf(object)] = i
			if content[zone] == nil {
				zones = append(zones, zone)
			}
			content[zone] = append(content[zone], object)
		}
	}
	contents, known := map[*v1beta1.DNSZone]*source.Zone{}, aliases{}
	for _, zone := range zones {
		built, err := source.Build(zone, content[zone], source.Options{
			Owns:       func(e metav1.Object, dnsName string) bool { return sameZone(members.ZoneOfEndpoint(e, dnsName), zone) },
			MaxRecords: source.RecordLimit{Max: math.MaxInt},
		})
		if err != nil {
			continue // Its own review says so.
		}
		contents[zone] = built
		known.add(zone, built)
	}
	for _, zone := range zones {
		built := contents[zone]
		if built == nil {
			continue
		}
		next := func(name string) string { return known.next(zone, name) }
		for id, d := range sortedDeclarations(built) {
			i := places[id.ObjectKey]
			field := valueField(all[i], id.Index)
			results[i].Traps = slices.Concat(results[i].Traps, hostTraps(zone, built, d, field, next), policyTraps(built, d, field), setTraps(built, d, field))
			if d.Accepted {
				results[i].Traps = append(results[i].Traps, circleTrap(field, d.Key, d.Rdata, next)...)
			}
		}
	}
}

// zonesOf returns the zones that take an object, or parts of it.
func zonesOf(members *membership.Cache, o client.Object) (zones []*v1beta1.DNSZone) {
	add := func(zone *v1beta1.DNSZone) {
		if zone != nil && !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	switch o := o.(type) {
	case v1beta1.Record:
		add(members.ZoneOfRecord(o))
	case *v1alpha1.DNSEndpoint:
		for _, endpoint := range o.Spec.Endpoints {
			if endpoint != nil {
				add(members.ZoneOfEndpoint(o, endpoint.DNSName))
			}
		}
	}
	return zones
}

// hostTraps returns the traps of one declaration, each once. The next of a name is where it leads if it is an alias.
func hostTraps(zone *v1beta1.DNSZone, built *source.Zone, d source.Declaration, field string, next func(string) string) (found []trap.Found) {
	if !d.Accepted || d.Key.Type != dns.TypeNS && d.Key.Type != dns.TypeMX && d.Key.Type != dns.TypeSRV {
		return nil
	}
	for _, rdata := range d.Rdata {
		host, _ := rrset.HostOf(d.Key.Type, rdata)
		alias, text := built.WarnOfHost(d.Key, host)
		id := trap.MissingGlue
		switch target := next(host); {
		case alias:
			id = trap.AliasTarget
		case target != "":
			id, text = trap.AliasTarget, fmt.Sprintf("%s is an alias of %s, and %s records must name the host itself (RFC 2181 section 10.3)", host, target, dns.Type(d.Key.Type))
		case text == "":
			continue
		case d.Key.Type != dns.TypeNS || getsAddresses(zone, built, host):
			continue
		}
		if !slices.ContainsFunc(found, func(f trap.Found) bool { return f.ID == id }) {
			found = append(found, trap.New(id, field, field+": "+text))
		}
	}
	return found
}

// policyTraps returns the trap of a declaration of a policy beside another one of its kind, which has another text.
func policyTraps(built *source.Zone, d source.Declaration, field string) []trap.Found {
	if !d.Accepted || d.Key.Type != dns.TypeTXT {
		return nil
	}
	all, _ := built.Get(d.Key)
	for _, rdata := range d.Rdata {
		kind := trap.PolicyOf(rdata)
		if kind == "" || !slices.ContainsFunc(all.Rdata, func(other string) bool { return other != rdata && trap.PolicyOf(other) == kind }) {
			continue
		}
		return []trap.Found{trap.New(trap.SeveralPolicies, field, fmt.Sprintf(
			"%s: %s has several TXT records that begin with %s, and readers take none of them then; write them as one", field, d.Key.Name, kind))}
	}
	return nil
}

// setTraps returns the traps of a declaration beside those of the same name and type.
func setTraps(built *source.Zone, d source.Declaration, field string) (found []trap.Found) {
	set, _ := built.Get(d.Key)
	if !d.Accepted {
		return nil
	}
	if set.TTL != d.TTL {
		ttl := "spec.ttl"
		if endpoint, is := strings.CutSuffix(field, ".targets"); is {
			ttl = endpoint + ".recordTTL"
		}
		found = append(found, trap.New(trap.SeveralTTLs, ttl, fmt.Sprintf("%s: %s is served with TTL %d, which another object declares, instead of %d", ttl, d.Key, set.TTL, d.TTL)))
	}
	isNull := func(rdata string) bool { return rrset.TargetOf(d.Key.Type, rdata) == "." }
	if (d.Key.Type == dns.TypeMX || d.Key.Type == dns.TypeSRV) && slices.ContainsFunc(d.Rdata, isNull) && slices.ContainsFunc(set.Rdata, func(rdata string) bool { return !isNull(rdata) }) {
		found = append(found, trap.New(trap.NullTarget, field, fmt.Sprintf(`%s: "." says that %s has no host, and others are declared`, field, d.Key)))
	}
	return found
}

// getsAddresses reports whether the addresses of servers become those of a name server of the zone itself, which has none.
func getsAddresses(zone *v1beta1.DNSZone, built *source.Zone, host string) bool {
	spec := zone.Spec
	if spec.ClusterRef == "" && spec.ClusterProviderRef == "" && len(spec.Bind9InstancesFrom) == 0 {
		return false
	}
	own, _ := built.Get(rrset.Key{Name: built.Name, Type: dns.TypeNS})
	return slices.Contains(own.Rdata, host)
}

// valueField is the field of an object that has its values, or names a host; of a DNSEndpoint, that of one endpoint.
func valueField(o client.Object, index int) string {
	field := declaration.ValueField(o)
	if _, is := o.(*v1alpha1.DNSEndpoint); is {
		return fmt.Sprintf("spec.endpoints[%d].%s", index, field)
	}
	return field
}
