package review

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
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
	// around are those of the objects around which others were collected, by the place of their endpoints.
	around map[source.ID]bool
}

// Bounds of a review. Nothing is known to exclude objects beyond them.
const (
	// maxRounds is how often objects are added, maxAround around how many objects in all.
	maxRounds, maxAround = 4, 256
	// maxRelated is how many objects there are at which it ends.
	maxRelated = 5000
)

func newRelatedObjects(o Objects, zone *v1beta1.DNSZone, record v1beta1.Record) (*relatedObjects, error) {
	apex, err := rrset.CanonicalName(zone.Spec.ZoneName)
	if err != nil {
		return nil, fmt.Errorf("naming the zone: %w", err)
	}
	return &relatedObjects{
		objects: o, zone: zone, apex: apex, itself: source.KeyOf(record), records: map[source.ObjectKey]v1beta1.Record{},
		endpoints: map[source.ObjectKey]map[int]*v1alpha1.Endpoint{}, found: map[source.ObjectKey]*v1alpha1.DNSEndpoint{}, around: map[source.ID]bool{},
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

// findRelated collects the objects that may exclude the record or be excluded by it, of each DNSEndpoint only the endpoints that matter,
// however many it has.
func findRelated(ctx context.Context, o Objects, zone *v1beta1.DNSZone, record v1beta1.Record) (*relatedObjects, error) {
	r, err := newRelatedObjects(o, zone, record)
	if err != nil {
		return nil, err
	}
	at, rdata, err := r.read(record)
	if err != nil {
		return nil, err
	}
	return r, r.collectAround(ctx, at, rdata)
}

// addExcluding adds the objects that may exclude those collected so far, and reports whether it found any.
func (r *relatedObjects) addExcluding(ctx context.Context) (bool, error) {
	size, records, endpoints := r.size(), maps.Clone(r.records), maps.Clone(r.endpoints)
	collect := func(id source.ID, at rrset.Key, rdata []string, err error) error {
		if err != nil || r.around[id] || len(r.around) == maxAround || r.size() > maxRelated { // What cannot be read excludes nothing.
			return nil
		}
		r.around[id] = true
		return r.collectAround(ctx, at, rdata)
	}
	for key, record := range records {
		at, rdata, err := r.read(record)
		if err := collect(source.ID{ObjectKey: key}, at, rdata, err); err != nil {
			return false, err
		}
	}
	for key, parts := range endpoints {
		for i, endpoint := range maps.Clone(parts) {
			at, rdata, err := declaration.EndpointData(endpoint)
			if err := collect(source.ID{ObjectKey: key, Index: i}, at, rdata, err); err != nil {
				return false, err
			}
		}
	}
	return r.size() > size, nil
}

func (r *relatedObjects) size() int {
	n := len(r.records)
	for _, parts := range r.endpoints {
		n += len(parts)
	}
	return n
}

// read returns what a record declares in the zone.
func (r *relatedObjects) read(record v1beta1.Record) (at rrset.Key, rdata []string, err error) {
	if at.Name, err = declaration.OwnerName(record.RecordName(), r.zone.Spec.ZoneName); err != nil {
		return at, nil, fmt.Errorf("naming the record: %w", err)
	}
	if at.Type, rdata, err = declaration.RecordData(record, r.zone.Spec.ZoneName); err != nil {
		return at, nil, fmt.Errorf("reading the record: %w", err)
	}
	return at, rdata, nil
}

// collectAround collects what may exclude an RRset or be excluded by it.
func (r *relatedObjects) collectAround(ctx context.Context, at rrset.Key, rdata []string) error {
	if err := r.collectAt(ctx, at.Name); err != nil {
		return err
	}
	for name := range parentNames(at.Name, r.apex) {
		if err := r.collectAt(ctx, name, dns.TypeNS, dns.TypeDNAME); err != nil {
			return err
		}
	}
	if at.Name != r.apex {
		if err := r.collectAt(ctx, r.apex, dns.TypeDNAME); err != nil {
			return err
		}
	}
	return r.collectByType(ctx, at, rdata)
}

// collectByType collects what only matters to some types: the data that a delegation would hide, and aliases that a name server
// of the zone would be.
func (r *relatedObjects) collectByType(ctx context.Context, at rrset.Key, rdata []string) error {
	switch {
	case at.Type == dns.TypeDNAME && at.Name == r.apex:
		return r.collectUnder(ctx, zoneKey(r.apex))
	case at.Type == dns.TypeCNAME:
		return r.collectAt(ctx, r.apex, dns.TypeNS)
	case at.Type == dns.TypeA || at.Type == dns.TypeAAAA:
		return r.collectUnder(ctx, nameServerKey(at.Name), dns.TypeNS)
	case at.Type == dns.TypeNS && at.Name == r.apex:
		for _, host := range rdata {
			if err := r.collectAt(ctx, host, dns.TypeCNAME); err != nil {
				return err
			}
		}
	case at.Type == dns.TypeNS || at.Type == dns.TypeDNAME:
		if err := r.collectUnder(ctx, belowKey(at.Name)); err != nil {
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
		if membership.MayTakeEndpoints(r.zone, e) { // Otherwise how many it has costs only its namespace.
			r.collectEndpoints(e, key)
		}
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
