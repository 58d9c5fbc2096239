package source

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Options are what the desired content of a zone depends on besides the objects themselves.
type Options struct {
	// ServerAddresses become the addresses of name servers in the zone that nobody declares an address for. BIND
	// serves no zone with a name server inside it that has none.
	ServerAddresses []netip.Addr
}

// Build gives the desired content of a zone that selects the given records. The result does not depend on their order.
// An error means that the zone itself is wrong and joins all reasons, each naming its field; a record that is wrong
// only is a Declaration that is not accepted. Records that are being deleted declare nothing. The objects are not
// changed, and the result shares nothing with them but strings.
//
// Values of one name and type are united over objects. Where declarations exclude each other the older object wins: by
// creationTimestamp, then namespace, name, kind and UID; the zone's own declarations come before all others.
func Build(zone *v1beta1.DNSZone, records []v1beta1.Record, opts Options) (*Zone, error) {
	a, err := readApex(&zone.Spec)
	if err != nil {
		return nil, err
	}
	b := newBuilder(a, refOf(zone, "DNSZone"), len(records))
	b.declareApex()
	b.read(records)
	b.prepare()
	for i := range b.zone.Declarations {
		if d := &b.zone.Declarations[i]; d.Accepted {
			b.admit(d)
		}
	}
	b.addServerAddresses(opts.ServerAddresses)
	b.note()
	return b.zone, nil
}

func refOf(o metav1.Object, kind string) Ref {
	return Ref{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration()}
}

var apiVersion = v1beta1.GroupVersion.String()

// String is how messages name an object: "ARecord dns-system/www".
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// builder holds a zone while it is made.
type builder struct {
	apex
	zone *Zone
	conflicts
	// lowest is, for RRsets that objects declare with different TTLs, the object with the lowest.
	lowest map[rrset.Key]Ref
	// refs and owners are what solely cuts from.
	refs   []Ref
	owners [][]Ref
}

func newBuilder(a apex, ref Ref, records int) *builder {
	return &builder{
		apex: a,
		zone: &Zone{
			Name: a.name, Ref: ref, SOA: a.soa,
			RRsets: make(map[rrset.Key]RRset, records+len(a.servers)+2),
		},
		lowest: map[rrset.Key]Ref{},
		refs:   make([]Ref, 0, records+len(a.servers)),
		owners: make([][]Ref, 0, records+len(a.servers)),
	}
}

// declareApex adds what the zone object itself declares: its NS RRset, and addresses of the name servers inside it.
func (b *builder) declareApex() {
	for _, server := range b.servers {
		b.add(rrset.Key{Name: b.name, Type: dns.TypeNS}, b.ttl, []string{server}, b.zone.Ref)
		b.addAddresses(server, b.addresses[server])
	}
}

func (b *builder) addAddresses(server string, addresses []netip.Addr) {
	if !rrset.IsSubdomain(server, b.name) {
		return
	}
	for _, a := range addresses {
		key := rrset.Key{Name: server, Type: dns.TypeAAAA}
		if a.Is4() {
			key.Type = dns.TypeA
		}
		b.add(key, b.ttl, []string{a.String()}, b.zone.Ref)
	}
}

// read turns the records into declarations, the oldest first. Those that are well-formed by themselves are marked as
// accepted until admit decides.
func (b *builder) read(records []v1beta1.Record) {
	all := oldestFirst(records)
	b.zone.Declarations = make([]Declaration, len(all))
	for i := range all {
		b.zone.Declarations[i] = b.declare(all[i].Record)
	}
}

func (b *builder) declare(r v1beta1.Record) Declaration {
	kind := v1beta1.KindOf(r)
	d := Declaration{Ref: refOf(r, kind.Kind), Key: rrset.Key{Type: kind.RRType}}
	values := recordData(r, b.name)
	d.Rdata, d.Note = values.rdata, values.note
	owner, err := OwnerName(r.RecordName(), b.name)
	if err != nil {
		err = fmt.Errorf("spec.name: %w", err)
	}
	d.Key.Name = owner
	ttl, ttlErr := effectiveTTL(r.RecordTTL(), b.ttl)
	d.TTL = ttl
	if err := cmp.Or(err, values.err, ttlErr, b.misplaced(d.Key, d.Rdata)); err != nil {
		d.Rdata = nil
		d.refuse(status.Invalid, err.Error())
		return d
	}
	d.Accepted = true
	return d
}

// misplaced refuses what BIND would ignore or DNS forbids whatever else is in the zone.
func (b *builder) misplaced(k rrset.Key, rdata []string) error {
	switch {
	case k.Type == dns.TypeCNAME && slices.Contains(rdata, k.Name):
		return fmt.Errorf("spec.target: %s would be an alias of itself", k.Name)
	case k.Type == dns.TypeCNAME && k.Name == b.name:
		return fmt.Errorf("spec.name: a CNAME cannot stand at the apex of the zone, %s, beside SOA and NS (RFC 1034 section 3.6.2); publish addresses there", b.name)
	case k.Type == dns.TypeNS && len(k.Name) > 1 && k.Name[0] == '*':
		return fmt.Errorf("spec.name: %s: name servers cannot be declared for a wildcard; BIND ignores them (RFC 4592 section 4.2)", k.Name)
	}
	return nil
}

func (d *Declaration) refuse(reason, message string) {
	d.Accepted, d.Reason, d.Message, d.Note = false, reason, message, ""
}

// addServerAddresses gives name servers of the zone that are inside it and have no address those of its servers.
func (b *builder) addServerAddresses(addresses []netip.Addr) {
	for _, server := range b.zone.RRsets[rrset.Key{Name: b.name, Type: dns.TypeNS}].Rdata {
		_, v4 := b.zone.RRsets[rrset.Key{Name: server, Type: dns.TypeA}]
		_, v6 := b.zone.RRsets[rrset.Key{Name: server, Type: dns.TypeAAAA}]
		if !v4 && !v6 {
			b.addAddresses(server, addresses)
		}
	}
}
