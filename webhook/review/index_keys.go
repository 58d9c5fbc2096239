package review

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// keyIndex is the index of records, DNSEndpoints and ZoneGrants in the caches. A grant is under the namespaces that it has limits for. The other keys are canonical names, which end in a dot: the
// owner name as it is, and with a sign before them the names below which the owner is (belowKeys), the hosts that a delegation names,
// and the zone. Keys of records that are in no zone yet begin with a slash. Keys of records are within their namespace, and within anyNamespace as
// well if zones of other namespaces may take the record.
const keyIndex = "name"

func nameServerKey(host string) string { return ">" + host }

// isDepthOfKey reports whether names of so many labels have keys of their own: those that are common do, with the 34 labels of a reverse name
// of IPv6, and few others. A name may have 127 labels, and a key takes some hundred bytes.
func isDepthOfKey(labels int) bool {
	switch labels {
	case 12, 16, 20, 24, 28, 32, 34, 48, 64, 96:
		return true
	}
	return 2 <= labels && labels <= 8
}

// hashOfNames is of this process: nobody can find names of one hash.
var hashOfNames = maphash.MakeSeed()

// belowKey is what everything below a name is under, and maybe more: what is below the nearest name above it that has a key.
func belowKey(name string) string {
	for labels := dns.CountLabel(name); labels > 2 && !isDepthOfKey(labels); labels-- {
		name = rrset.ParentName(name)
	}
	return string(binary.BigEndian.AppendUint64([]byte{'<'}, maphash.String(hashOfNames, name)))
}

// belowKeys are the keys of the names above an owner and below an apex; top-level domains have none.
func belowKeys(owner, apex string) (keys []string) {
	labels, shared := dns.CountLabel(owner), ""
	for name := range parentNames(owner, apex) {
		if labels--; labels < 2 {
			break
		}
		shared = name
		if isDepthOfKey(labels) {
			keys, shared = append(keys, belowKey(name)), ""
		}
	}
	if shared != "" {
		keys = append(keys, belowKey(shared))
	}
	return keys
}

// zoneKey is what all records are under that a zone takes, by its apex.
func zoneKey(apex string) string { return "=" + apex }

// unstampedKey is what the index has the records under that are in no zone yet: their first label, because they may be
// written complete or relative to a zone that is not known.
func unstampedKey(name string) string {
	label, _, _ := strings.Cut(strings.ToLower(name), ".")
	return "/" + label
}

// anyNamespace stands for the namespaces of all records that zones of others may take.
const anyNamespace = "*"

// inNamespace is a key of the records of a namespace.
func inNamespace(namespace, key string) string { return namespace + "/" + key }

// namespacesOf are those within which a record is found.
func namespacesOf(record v1beta1.Record) []string {
	if membership.MayTravel(record) {
		return []string{record.GetNamespace(), anyNamespace}
	}
	return []string{record.GetNamespace()}
}

// indexKeys returns the keys of an object of a cache.
func indexKeys(o any) ([]string, error) {
	switch o := o.(type) {
	case v1beta1.Record:
		var keys []string
		for _, key := range recordKeys(o) {
			for _, namespace := range namespacesOf(o) {
				keys = append(keys, inNamespace(namespace, key))
			}
		}
		return keys, nil
	case *v1alpha1.DNSEndpoint:
		return endpointKeys(o), nil
	case *v1beta1.ZoneGrant:
		return limitedNamespaces(o), nil
	}
	return nil, nil
}

// recordKeys are those of a record in the zone that its stamp names. The stamp may lag behind for a moment, which
// admission can bear: the controller has the last word on conflicts. Going by labels instead would put the "www" of
// thousands of zones under one key.
func recordKeys(record v1beta1.Record) []string {
	stamp := record.GetAnnotations()[v1beta1.ZoneAnnotation]
	if stamp == "" {
		return []string{unstampedKey(record.RecordName())}
	}
	return keysIn(record, stamp)
}

// keysIn are the keys of a record in a zone; none for a name that the controller does not accept either.
func keysIn(record v1beta1.Record, zone string) []string {
	owner, err := declaration.OwnerName(record.RecordName(), zone)
	if err != nil {
		return nil
	}
	apex, _ := rrset.CanonicalName(zone)
	keys := []string{owner, zoneKey(apex)}
	keys = append(keys, belowKeys(owner, apex)...)
	if declaration.RecordType(record) == dns.TypeNS {
		if _, hosts, err := declaration.RecordData(record, zone); err == nil {
			for _, host := range hosts {
				keys = append(keys, nameServerKey(host))
			}
		}
	}
	return keys
}

// limitedNamespaces are the keys of a grant: the namespaces that it has limits for.
func limitedNamespaces(g *v1beta1.ZoneGrant) []string {
	if g.Spec.Limits == nil {
		return nil
	}
	return g.Spec.Namespaces
}

// allNamespaces stands for all namespaces in a ZoneGrant.
const allNamespaces = "*"

// endpointKeys are those of all endpoints of a DNSEndpoint, each once.
func endpointKeys(e *v1alpha1.DNSEndpoint) []string {
	var keys []string
	for _, endpoint := range e.Spec.Endpoints {
		if endpoint != nil {
			keys = append(keys, keysOfEndpoint(endpoint)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// keysOfEndpoint knows no zone: the owner is taken to be below every name that it ends in, top-level domains left out.
func keysOfEndpoint(endpoint *v1alpha1.Endpoint) []string {
	owner, err := rrset.CanonicalName(endpoint.DNSName)
	if err != nil {
		return nil
	}
	keys := append([]string{owner}, belowKeys(owner, ".")...)
	if endpoint.RecordType != "NS" {
		return keys
	}
	if _, hosts, err := declaration.EndpointData(endpoint); err == nil {
		for _, host := range hosts {
			keys = append(keys, nameServerKey(host))
		}
	}
	return keys
}

// parentNames yields the names that a name is below, the nearest first, up to the apex, which is left out.
func parentNames(name, apex string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if name == apex {
			return
		}
		for name = rrset.ParentName(name); name != apex && name != ""; name = rrset.ParentName(name) {
			if !yield(name) {
				return
			}
		}
	}
}
