package zoneimport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// zoneServers are who is to serve the zone.
type zoneServers struct {
	// Cluster is spec.clusterRef, Instances the labels of bind9InstancesFrom, Provider the only one of providerRefs.
	Cluster   string
	Instances map[string]string
	Provider  string
}

// manifestBuilder makes the objects that declare a zone.
type manifestBuilder struct {
	content *zoneContent
	servers zoneServers
	// namespace is that of the objects; empty to leave it to who applies them.
	namespace string
	// maxRecords is how many records of one name and type the servers take; 0 if that is not known.
	maxRecords int
	// asEndpoints prefers DNSEndpoints with many endpoints to records.
	asEndpoints bool
	report      *differenceReport
	names       *objectNames

	// zoneObject is the name of the DNSZone.
	zoneObject string
	zone       *v1beta1.DNSZone
	// sets are what is not declared yet, in canonical order; wanted are all RRsets that are to be declared, with their final TTLs.
	sets   []placedSet
	wanted map[rrset.Key]placedSet
	// objects declare the zone beside the DNSZone, in the order of the sets.
	objects []source.Object
	grouped []*v1alpha1.Endpoint
}

// build makes the objects, and removes those that would not be published.
func (m *manifestBuilder) build() error {
	m.names, m.wanted = newObjectNames(), make(map[rrset.Key]placedSet, len(m.content.sets))
	m.zoneObject = m.names.choose("DNSZone", m.content.name, nameOfText(m.content.name))
	m.sets = m.removeHidden(m.content.sets)
	for _, set := range m.sets {
		m.wanted[set.Key] = set
	}
	if err := m.declareZone(); err != nil {
		return err
	}
	m.setMetadata(m.zone, v1beta1.GroupVersion.WithKind("DNSZone"), m.zoneObject)
	for _, set := range m.sets {
		m.declareSet(set)
	}
	for i, group := range endpointGroups(m.grouped) {
		m.addEndpoints(m.names.choose(source.EndpointKind, fmt.Sprint(i), m.zoneObject, fmt.Sprintf("%03d", i+1)), group)
	}
	return m.verifyContent()
}

// removeHidden leaves out what is below a delegation and not the address of a name server (RFC 1034 section 4.2.1), or below a DNAME (RFC
// 6672 section 2.4): a server has it in its file and never answers with it.
func (m *manifestBuilder) removeHidden(sets []placedSet) []placedSet {
	cuts, glue, redirected := map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}
	for _, set := range sets {
		if set.Type == dns.TypeDNAME {
			redirected[set.Name] = struct{}{}
		}
		if set.Type != dns.TypeNS || strings.HasPrefix(set.Name, "*.") {
			continue
		}
		if _, hidden := m.delegationAbove(cuts, rrset.ParentName(set.Name)); hidden {
			continue
		}
		if set.Name != m.content.name {
			cuts[set.Name] = struct{}{}
		}
		for _, host := range set.Rdata {
			glue[host] = struct{}{}
		}
	}
	kept := make([]placedSet, 0, len(sets))
	for _, set := range sets {
		cut, below := m.delegationAbove(cuts, set.Name)
		_, isGlue := glue[set.Name]
		by, isRedirected := m.redirectionAbove(redirected, set.Name)
		switch notDeclarable := rrset.CheckDeclarable(set.Type); {
		case notDeclarable != nil:
			m.report.leaveOut(set.place, set.Key, notDeclarable.Error())
		case isRedirected:
			m.report.leaveOut(set.place, set.Key, "the DNAME at "+by+" hides it")
		case !below, set.Name == cut && (set.Type == dns.TypeNS || set.Type == dns.TypeDS), isGlue && (set.Type == dns.TypeA || set.Type == dns.TypeAAAA):
			kept = append(kept, set)
		default:
			m.report.leaveOut(set.place, set.Key, "the delegation of "+cut+" hides it; it belongs into that zone")
		}
	}
	return kept
}

// delegationAbove returns the delegation that a name is at or below.
func (m *manifestBuilder) delegationAbove(cuts map[string]struct{}, name string) (string, bool) {
	for at := range rrset.NamesBelow(m.content.name, name) {
		if _, found := cuts[at]; found {
			return at, true
		}
	}
	return "", false
}

// redirectionAbove returns the name above another one that has a DNAME.
func (m *manifestBuilder) redirectionAbove(redirected map[string]struct{}, name string) (string, bool) {
	if len(redirected) == 0 {
		return "", false
	}
	for below := range rrset.NamesBelow(m.content.name, name) {
		above := rrset.ParentName(below)
		if _, found := redirected[above]; found {
			return above, true
		}
	}
	return "", false
}

// mostRecords is the highest maxRecordsPerType.
const mostRecords = 4000

// declareSet adds the objects of one RRset, in the form that is preferred if that can express it.
func (m *manifestBuilder) declareSet(set placedSet) {
	if len(set.Rdata) > mostRecords {
		delete(m.wanted, set.Key)
		m.report.leaveOut(set.place, set.Key, fmt.Sprintf("it has %d values, and maxRecordsPerType is at most %d", len(set.Rdata), mostRecords))
		return
	}
	zoneTTL := m.content.soa.TTL
	endpoint, err := newEndpoint(set.RRset, zoneTTL)
	fits := err == nil && (set.TTL == zoneTTL || set.TTL != 0)
	if m.asEndpoints && fits {
		m.grouped = append(m.grouped, endpoint)
		return
	}
	var ttl *int64
	if set.TTL != zoneTTL {
		ttl = new(int64(set.TTL))
	}
	if records := recordsOf(set.RRset, m.content.name, ttl); records != nil {
		m.addRecords(set, records)
		return
	}
	if err != nil {
		m.declarePart(set, err)
		return
	}
	if !fits {
		m.report.change(set.place, set.Key, "its TTL of 0 becomes 1: in a DNSEndpoint, 0 is the zone's TTL")
		endpoint.RecordTTL, set.TTL = 1, 1
		m.wanted[set.Key] = set
	}
	name := m.names.choose(source.EndpointKind, set.Key.String(), nameOfOwner(set.Name), strings.ToLower(rrset.TypeName(set.Type)))
	m.addEndpoints(name, []*v1alpha1.Endpoint{endpoint})
}

// declarePart declares the values of an RRset that can be declared one by one, and leaves out the others: one mail server that is an
// address must not take the others with it. The cause is why all together cannot be declared.
func (m *manifestBuilder) declarePart(set placedSet, cause error) {
	left := map[string]error{}
	for _, data := range set.Rdata {
		one := set.RRset
		one.Rdata = []string{data}
		if _, err := newEndpoint(one, m.content.soa.TTL); err != nil && recordsOf(one, m.content.name, nil) == nil {
			left[data] = err
		}
	}
	if len(left) == 0 {
		left = map[string]error{"": cause}
		set.Rdata = nil
	}
	for _, data := range slices.Sorted(maps.Keys(left)) {
		m.report.leaveOut(set.place, set.Key, strings.ReplaceAll(strings.TrimPrefix(left[data].Error(), "targets[0]: "), "\n", "; "))
	}
	set.Rdata = slices.DeleteFunc(slices.Clone(set.Rdata), func(data string) bool { return left[data] != nil })
	delete(m.wanted, set.Key)
	if len(set.Rdata) > 0 {
		m.wanted[set.Key] = set
		m.declareSet(set)
	}
}

func (m *manifestBuilder) addRecords(set placedSet, records []v1beta1.Record) {
	kind := v1beta1.KindOf(records[0])
	values := namesOfValues(set.Type, set.Rdata)
	for i, record := range records {
		parts, about := []string{nameOfOwner(set.Name)}, set.Name
		if kind.Type == "" {
			parts, about = append(parts, nameOfText(rrset.TypeName(set.Type))), set.Key.String()
		}
		if len(records) > 1 {
			parts, about = append(parts, values[i]), about+" "+set.Rdata[i]
		}
		m.setMetadata(record, kind.GroupVersionKind(), m.names.choose(kind.Kind, about, parts...))
		m.objects = append(m.objects, record)
	}
}

func (m *manifestBuilder) addEndpoints(name string, endpoints []*v1alpha1.Endpoint) {
	object := &v1alpha1.DNSEndpoint{Spec: v1alpha1.DNSEndpointSpec{Endpoints: endpoints}}
	m.setMetadata(object, v1alpha1.GroupVersion.WithKind(source.EndpointKind), name)
	m.objects = append(m.objects, object)
}

func (m *manifestBuilder) setMetadata(object source.Object, kind schema.GroupVersionKind, name string) {
	object.GetObjectKind().SetGroupVersionKind(kind)
	object.SetName(name)
	object.SetNamespace(m.namespace)
	if _, isZone := object.(*v1beta1.DNSZone); !isZone {
		object.SetLabels(map[string]string{zoneLabel: m.zoneObject})
	}
}

// verifyContent has the controller's own rules decide on the objects: what they refuse is taken out, and what would be published
// otherwise than it was is reported.
func (m *manifestBuilder) verifyContent() error {
	options := source.Options{MaxRecords: source.RecordLimit{Max: mostRecords}}
	published, err := source.Build(m.zone, m.objects, options)
	if err != nil {
		return fmt.Errorf("the DNSZone would be refused: %w", err)
	}
	reasons := map[rrset.Key]string{}
	if published.Refused > 0 {
		reasons = m.removeRefused(published)
		if published, err = source.Build(m.zone, m.objects, options); err != nil {
			return err
		}
	}
	if !published.SOA.SameData(m.content.soa) {
		m.changeSOA("it would be %s", published.SOA.Rdata())
	}
	most := cmp.Or(m.maxRecords, v1beta1.DefaultMaxRecordsPerType)
	for key, want := range m.wanted {
		switch got, found := published.Get(key); {
		case !found:
			m.report.leaveOut(want.place, key, cmp.Or(reasons[key], "the manifests do not express it"))
		case !got.Equal(want.RRset):
			m.report.change(want.place, key, "it would be %s %s", got, reasons[key])
		case len(want.Rdata) > most:
			m.report.keep(want.place, key, "it has %d values, and servers take %d of one name and type unless maxRecordsPerType of their cluster, instance or "+
				"DNSProvider is higher; it is published as soon as all of the zone's servers take as many", len(want.Rdata), most)
		}
	}
	for set := range published.All() {
		if _, wanted := m.wanted[set.Key]; !wanted {
			m.report.change(m.content.soaPlace, set.Key, "it would be added: %s", set)
		}
	}
	return nil
}

// removeRefused takes out the objects and endpoints that the controller would not accept, and returns why.
func (m *manifestBuilder) removeRefused(published *source.Zone) map[rrset.Key]string {
	refused, reasons := map[source.ID]bool{}, map[rrset.Key]string{}
	for id, d := range published.Declarations.All() {
		if !d.Accepted {
			refused[id] = true
			reasons[d.Key] = max(reasons[d.Key], d.Message) // Always the same of several.
		}
	}
	m.objects = slices.DeleteFunc(m.objects, func(o source.Object) bool {
		id := source.ID{ObjectKey: source.KeyOf(o)}
		e, many := o.(*v1alpha1.DNSEndpoint)
		if !many {
			return refused[id]
		}
		var kept []*v1alpha1.Endpoint
		for id.Index = range e.Spec.Endpoints {
			if !refused[id] {
				kept = append(kept, e.Spec.Endpoints[id.Index])
			}
		}
		e.Spec.Endpoints = kept
		return len(kept) == 0
	})
	return reasons
}
