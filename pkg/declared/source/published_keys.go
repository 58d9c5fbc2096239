package source

import (
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// PublishedKeys are the RRsets of a zone, whose canonical name is given, that an object has or may have values in: those
// that its status says it has, those that its spec asks for (a crash between an update and the status that follows it
// leaves data that only the spec knows), and those of the names that it had before, by its annotation
// bindy.firestoned.io/former-names. They are sorted, and no RRset comes twice. Which zone an endpoint belongs to is not asked: the name of an
// endpoint that belongs to a zone below this one is among them.
func PublishedKeys(o Object, zone string) []rrset.Key {
	p := publishedKeys{zone: zone}
	switch o := o.(type) {
	case v1beta1.Record:
		p.addRecord(o)
	case *v1alpha1.DNSEndpoint:
		p.addEndpoints(o)
	}
	slices.SortFunc(p.keys, rrset.Key.Compare)
	return slices.Compact(p.keys)
}

// IsPublished reports whether the status of an object says that a zone's servers have data of it.
func IsPublished(o Object, zone string) bool {
	p := publishedKeys{zone: zone}
	switch o := o.(type) {
	case v1beta1.Record:
		st := o.GetRecordStatus()
		return st.PublishedName != "" && p.isZone(st.Zone)
	case *v1alpha1.DNSEndpoint:
		return slices.ContainsFunc(o.Status.Zones, func(in v1alpha1.EndpointZone) bool { return len(in.RRsets) > 0 && p.isZone(in.ZoneName) })
	}
	return false
}

// publishedKeys collects keys inside a zone.
type publishedKeys struct {
	zone string
	keys []rrset.Key
}

func (p *publishedKeys) addKey(name string, rrtype uint16) {
	if rrtype != 0 && rrset.IsSubdomain(name, p.zone) {
		p.keys = append(p.keys, rrset.Key{Name: name, Type: rrtype})
	}
}

// addAbsoluteName adds a name that is written in full, with or without the final dot.
func (p *publishedKeys) addAbsoluteName(name string, rrtype uint16) {
	if name, err := rrset.CanonicalName(name); err == nil {
		p.addKey(name, rrtype)
	}
}

// addRelativeName adds a name that is written as records write it.
func (p *publishedKeys) addRelativeName(name string, rrtype uint16) {
	if name, err := declaration.OwnerName(name, p.zone); err == nil {
		p.addKey(name, rrtype)
	}
}

func (p *publishedKeys) addRecord(r v1beta1.Record) {
	rrtype := declaration.RecordType(r)
	if st := r.GetRecordStatus(); st.PublishedName != "" && (st.Zone == "" || p.isZone(st.Zone)) {
		p.addAbsoluteName(st.PublishedName, rrtype)
	}
	p.addRelativeName(r.RecordName(), rrtype)
	for name, rrtype := range FormerNames(r) {
		p.addRelativeName(name, rrtype)
	}
}

func (p *publishedKeys) addEndpoints(e *v1alpha1.DNSEndpoint) {
	for _, zone := range e.Status.Zones {
		if !p.isZone(zone.ZoneName) {
			continue
		}
		for _, s := range zone.RRsets {
			p.addAbsoluteName(nameAndType(s))
		}
	}
	for _, endpoint := range e.Spec.Endpoints {
		if endpoint != nil {
			p.addAbsoluteName(endpoint.DNSName, rrset.DeclarableType(endpoint.RecordType))
		}
	}
	for name, rrtype := range FormerNames(e) {
		p.addAbsoluteName(name, rrtype)
	}
}

func (p *publishedKeys) isZone(name string) bool {
	name, err := rrset.CanonicalName(name)
	return err == nil && name == p.zone
}

// FormerNames yields the entries of an object's annotation of former names that can be read, as written.
func FormerNames(o Object) func(yield func(name string, rrtype uint16) bool) {
	return func(yield func(string, uint16) bool) {
		list := o.GetAnnotations()[v1beta1.FormerNamesAnnotation]
		for list != "" {
			var entry string
			entry, list, _ = strings.Cut(list, ",")
			if name, rrtype := nameAndType(strings.TrimSpace(entry)); rrtype != 0 && !yield(name, rrtype) {
				return
			}
		}
	}
}

// nameAndType reads "NAME/TYPE"; a name may have slashes of its own. The type is 0 when it is none that we publish.
func nameAndType(s string) (name string, rrtype uint16) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, 0
	}
	return s[:i], rrset.DeclarableType(s[i+1:])
}
