// Package declaration reads the fields of one object: names, values and TTLs, in canonical form. An error names the field that is wrong, and says
// what to write. What other objects declare is for package source, which calls this one, as do the webhook and membership. The package does
// no I/O.
package declaration

import (
	"errors"
	"fmt"
	"slices"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Declared is what a record, or one endpoint of a DNSEndpoint, declares: an RRset in canonical form, with its effective TTL (own, zone's,
// 3600). With an error it is what could be read of name, type and TTL.
type Declared struct {
	rrset.RRset
	// Note is a remark for the user.
	Note string
	// Err joins what is wrong, a line for each; each names its field.
	Err error
}

// declare makes values a declaration of a name, unless there is an error.
func (d recordValues) declare(key rrset.Key, ttl uint32, name string, err error) Declared {
	declared := Declared{RRset: rrset.RRset{Key: key, TTL: ttl}, Note: d.note, Err: err}
	if err == nil {
		declared.Rdata, declared.Spelling = d.rdata, rrset.NewSpelling(key, spellName(name, key.Name), d.spelled)
	}
	return declared
}

// specError says what could not be decoded of an object's spec, if anything.
func specError(o metav1.Object) error {
	if problem := lenient.SpecProblem(o); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// fieldNames are the names of fields in messages.
type fieldNames struct{ name, values string }

var endpointFields = fieldNames{name: "dnsName", values: "targets"}

func fieldsOf(r v1beta1.Record) fieldNames {
	return fieldNames{name: "spec.name", values: ValueField(r)}
}

// ValueField names the field of a record that has its values, or the last part of them: a host. For a DNSEndpoint it is the one of an endpoint.
func ValueField(o any) string {
	switch o.(type) {
	case *v1alpha1.DNSEndpoint:
		return endpointFields.values
	case *v1beta1.ARecord:
		return "spec.ipv4Addresses"
	case *v1beta1.AAAARecord:
		return "spec.ipv6Addresses"
	case *v1beta1.TXTRecord:
		return "spec.text"
	case *v1beta1.CAARecord:
		return "spec.value"
	case *v1beta1.NSRecord:
		return "spec.nameserver"
	case *v1beta1.MXRecord:
		return "spec.mailServer"
	case *v1beta1.SRVRecord, *v1beta1.CNAMERecord, *v1beta1.PTRRecord:
		return "spec.target"
	}
	return "spec.data"
}

// Label is what messages about one declaration of an object begin with: empty for a record, which has only one.
func Label(o any, index int) string {
	e, ok := o.(*v1alpha1.DNSEndpoint)
	if !ok {
		return ""
	}
	endpoint := e.Spec.Endpoints[index]
	return fmt.Sprintf("spec.endpoints[%d] (%s %s): ", index, rrset.Shorten(endpoint.DNSName), rrset.Shorten(endpoint.RecordType))
}

// checkPlacement refuses what BIND would ignore or DNS forbids whatever zone it is in.
func (f fieldNames) checkPlacement(k rrset.Key, rdata []string) error {
	switch {
	case k.Type == dns.TypeCNAME && slices.Contains(rdata, k.Name):
		return fmt.Errorf("%s: %s would be an alias of itself", f.values, k.Name)
	case k.Type == dns.TypeDNAME && slices.ContainsFunc(rdata, func(target string) bool { return rrset.IsSubdomain(target, k.Name) }):
		return fmt.Errorf("%s: %s would redirect to itself (RFC 6672 section 2.4)", f.values, k.Name)
	case k.Type == dns.TypeDNAME && len(k.Name) > 1 && k.Name[0] == '*':
		return fmt.Errorf("%s: %s: a DNAME cannot be declared for a wildcard (RFC 6672 section 3.3)", f.name, k.Name)
	case k.Type == dns.TypeNS && len(k.Name) > 1 && k.Name[0] == '*':
		return fmt.Errorf("%s: %s: name servers cannot be declared for a wildcard; BIND ignores them (RFC 4592 section 4.2)", f.name, k.Name)
	}
	return nil
}

// checkApex refuses a CNAME where SOA and NS of the zone are, and a DS, which is the parent's.
func (f fieldNames) checkApex(zone string, k rrset.Key) error {
	if k.Type == dns.TypeDS && k.Name == zone {
		return fmt.Errorf("%s: the DS of %s belongs in the zone above it (RFC 4035 section 2.4)", f.name, zone)
	}
	if k.Type != dns.TypeCNAME || k.Name != zone {
		return nil
	}
	return fmt.Errorf("%s: a CNAME cannot stand at the apex of the zone, %s, beside SOA and NS (RFC 1034 section 3.6.2); publish addresses there", f.name, zone)
}
