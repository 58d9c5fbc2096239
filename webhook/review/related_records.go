package review

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// relatedObjects collects what other objects declare in a zone that may exclude a record or be excluded by it. What that leads to
// is for package source to say: everything is collected that has a part in it.
type relatedObjects struct {
	objects Objects
	zone    *v1beta1.DNSZone
	apex    string // canonical name of the zone
	// itself is the record, as a stored one has it.
	itself  source.ObjectKey
	records map[source.ObjectKey]v1beta1.Record
	// endpoints are those endpoints of each DNSEndpoint that were found, by their place.
	endpoints map[source.ObjectKey]map[int]*v1alpha1.Endpoint
	found     map[source.ObjectKey]*v1alpha1.DNSEndpoint
}

func newRelatedObjects(o Objects, zone *v1beta1.DNSZone, record v1beta1.Record) (*relatedObjects, error) {
	apex, err := rrset.CanonicalName(zone.Spec.ZoneName)
	if err != nil {
		return nil, fmt.Errorf("naming the zone: %w", err)
	}
	return &relatedObjects{
		objects: o, zone: zone, apex: apex, itself: source.KeyOf(record), records: map[source.ObjectKey]v1beta1.Record{},
		endpoints: map[source.ObjectKey]map[int]*v1alpha1.Endpoint{}, found: map[source.ObjectKey]*v1alpha1.DNSEndpoint{},
	}, nil
}

// findDeclared reports whether objects other than the record declare something at a name of the zone: there, by a wildcard, or by a delegation.
func findDeclared(ctx context.Context, o Objects, zone *v1beta1.DNSZone, record v1beta1.Record, name string) (bool, error) {
	r, err := newRelatedObjects(o, zone, record)
	if err != nil {
		return false, err
	}
	if err := r.collectAt(ctx, name); err != nil {
		return false, err
	}
	for parent := range parentNames(name, r.apex) {
		if err := errors.Join(r.collectAt(ctx, parent, dns.TypeNS, dns.TypeDNAME), r.collectAt(ctx, "*."+parent)); err != nil {
			return false, err
		}
	}
	err = r.collectAt(ctx, "*."+r.apex)
	return len(r.records)+len(r.found) > 0, err
}

// findRelated returns the objects, of each DNSEndpoint only the endpoints that matter, however many it has.
func findRelated(ctx context.Context, o Objects, zone *v1beta1.DNSZone, record v1beta1.Record) ([]source.Object, error) {
	owner, err := declaration.OwnerName(record.RecordName(), zone.Spec.ZoneName)
	if err != nil {
		return nil, fmt.Errorf("naming the record: %w", err)
	}
	r, err := newRelatedObjects(o, zone, record)
	if err != nil {
		return nil, err
	}
	if err := r.collectAt(ctx, owner); err != nil {
		return nil, err
	}
	for name := range parentNames(owner, r.apex) {
		if err := r.collectAt(ctx, name, dns.TypeNS, dns.TypeDNAME); err != nil {
			return nil, err
		}
	}
	if owner != r.apex {
		if err := r.collectAt(ctx, r.apex, dns.TypeDNAME); err != nil {
			return nil, err
		}
	}
	if err := r.collectByType(ctx, record, owner); err != nil {
		return nil, err
	}
	return r.all(), nil
}

// collectByType collects what only matters to some types: the data that a delegation would hide, and aliases that a name server
// of the zone would be.
func (r *relatedObjects) collectByType(ctx context.Context, record v1beta1.Record, owner string) error {
	switch rrtype := declaration.RecordType(record); {
	case rrtype == dns.TypeDNAME && owner == r.apex:
		return r.collectUnder(ctx, zoneKey(r.apex))
	case rrtype == dns.TypeCNAME:
		return r.collectAt(ctx, r.apex, dns.TypeNS)
	case rrtype == dns.TypeA || rrtype == dns.TypeAAAA:
		return r.collectUnder(ctx, nameServerKey(owner), dns.TypeNS)
	case rrtype == dns.TypeNS && owner == r.apex:
		_, hosts, err := declaration.RecordData(record, r.zone.Spec.ZoneName)
		if err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		for _, host := range hosts {
			if err := r.collectAt(ctx, host, dns.TypeCNAME); err != nil {
				return err
			}
		}
	case rrtype == dns.TypeNS || rrtype == dns.TypeDNAME:
		if err := r.collectUnder(ctx, belowKey(owner)); err != nil {
			return err
		}
		return r.collectGlue(ctx)
	}
	return nil
}

// collectGlue collects the delegations for which an address below another one is glue.
func (r *relatedObjects) collectGlue(ctx context.Context) error {
	for _, record := range r.records {
		if rrtype := declaration.RecordType(record); rrtype != dns.TypeA && rrtype != dns.TypeAAAA {
			continue
		}
		if owner, err := declaration.OwnerName(record.RecordName(), r.zone.Spec.ZoneName); err == nil {
			if err := r.collectUnder(ctx, nameServerKey(owner), dns.TypeNS); err != nil {
				return err
			}
		}
	}
	return nil
}

// collectAt collects what is declared at a name, of all types or of one.
func (r *relatedObjects) collectAt(ctx context.Context, name string, types ...uint16) error {
	keys := []string{name, unstampedKey(name)}
	if name == r.apex {
		keys = append(keys, unstampedKey("@"))
	}
	for _, key := range keys {
		if err := r.collectUnder(ctx, key, types...); err != nil {
			return err
		}
	}
	return nil
}

// collectUnder collects what the index has under a key, of all types or of one, as far as the zone takes it.
func (r *relatedObjects) collectUnder(ctx context.Context, key string, types ...uint16) error {
	for _, kind := range v1beta1.RecordKinds {
		if len(types) > 0 && kind.Type != "" && !slices.Contains(types, kind.RRType) {
			continue
		}
		records, err := r.recordsUnder(ctx, kind, key)
		if err != nil {
			return err
		}
		for _, record := range records {
			isAsked := len(types) == 0 || slices.Contains(types, declaration.RecordType(record))
			if id := source.KeyOf(record); isAsked && id != r.itself && sameZone(r.objects.zoneCache().ZoneOfRecord(record), r.zone) {
				r.records[id] = record
			}
		}
	}
	endpoints, err := r.objects.endpointsUnder(ctx, key)
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		r.collectEndpoints(e, key)
	}
	return nil
}

// recordsUnder returns records of the zone's namespace, and of others if the zone selects any.
func (r *relatedObjects) recordsUnder(ctx context.Context, kind v1beta1.RecordKind, key string) ([]v1beta1.Record, error) {
	records, err := r.objects.recordsUnder(ctx, kind, r.zone.Namespace, key)
	if err != nil || !slices.ContainsFunc(r.zone.Spec.RecordsFrom, func(from v1beta1.RecordSource) bool { return from.NamespaceSelector != nil }) {
		return records, err
	}
	others, err := r.objects.recordsUnder(ctx, kind, anyNamespace, key)
	return slices.Concat(records, others), err
}

// collectEndpoints notes the endpoints of a DNSEndpoint that are under the key and in the zone.
func (r *relatedObjects) collectEndpoints(e *v1alpha1.DNSEndpoint, key string) {
	id := source.KeyOf(e)
	for i, endpoint := range e.Spec.Endpoints {
		if endpoint == nil || !slices.Contains(keysOfEndpoint(endpoint), key) || !sameZone(r.objects.zoneCache().ZoneOfEndpoint(e, endpoint.DNSName), r.zone) {
			continue
		}
		if r.found[id] = e; r.endpoints[id] == nil {
			r.endpoints[id] = map[int]*v1alpha1.Endpoint{}
		}
		r.endpoints[id][i] = endpoint
	}
}

// all returns what was collected. Which comes first is decided by age, not by place.
func (r *relatedObjects) all() []source.Object {
	var all []source.Object
	for _, record := range r.records {
		all = append(all, record)
	}
	for id, e := range r.found {
		part := *e
		part.Spec.Endpoints = nil
		for i := range e.Spec.Endpoints {
			if endpoint := r.endpoints[id][i]; endpoint != nil {
				part.Spec.Endpoints = append(part.Spec.Endpoints, endpoint)
			}
		}
		all = append(all, &part)
	}
	return all
}

func sameZone(candidate, zone *v1beta1.DNSZone) bool {
	return candidate != nil && candidate.Namespace == zone.Namespace && candidate.Name == zone.Name
}
