package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// fieldNames are the names of fields in messages.
type fieldNames struct{ name, target, server string }

var (
	recordFields   = fieldNames{name: "spec.name", target: "spec.target", server: "spec.nameserver"}
	endpointFields = fieldNames{name: "dnsName", target: "targets", server: "targets"}
)

func fieldsOf(o Object) fieldNames {
	if _, ok := o.(*v1alpha1.DNSEndpoint); ok {
		return endpointFields
	}
	return recordFields
}

// declarationLabel is what messages about one declaration of an object begin with: empty for a record, which has only one.
func declarationLabel(o Object, index int) string {
	e, ok := o.(*v1alpha1.DNSEndpoint)
	if !ok {
		return ""
	}
	endpoint := e.Spec.Endpoints[index]
	return fmt.Sprintf("spec.endpoints[%d] (%s %s): ", index, shortenText(endpoint.DNSName), shortenText(endpoint.RecordType))
}

// joinLines puts the first few of joined errors on one line.
func joinLines(err error) string {
	return status.JoinSome(strings.Split(err.Error(), "\n"), 5, "; ")
}

// checkPlacement refuses what BIND would ignore or DNS forbids whatever zone it is in.
func (f fieldNames) checkPlacement(k rrset.Key, rdata []string) error {
	switch {
	case k.Type == dns.TypeCNAME && slices.Contains(rdata, k.Name):
		return fmt.Errorf("%s: %s would be an alias of itself", f.target, k.Name)
	case k.Type == dns.TypeDNAME && slices.ContainsFunc(rdata, func(target string) bool { return rrset.IsSubdomain(target, k.Name) }):
		return fmt.Errorf("%s: %s would redirect to itself (RFC 6672 section 2.4)", f.target, k.Name)
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

func (d *Declaration) markRefused(reason, message string) {
	d.Accepted, d.Reason, d.Message, d.Note = false, reason, message, ""
}

// markWaiting refuses a declaration that is published when what is in its way is gone.
func (d *Declaration) markWaiting(reason, message string) {
	d.markRefused(reason, message)
	d.Waits = true
}

// Hash is the SHA-256, in lower-case hexadecimal, of everything in a declaration that affects DNS: owner name, type, TTL
// and values. Which object declares it, and whether it is accepted, is no part of it.
func Hash(decl Declaration) string {
	b := make([]byte, 0, 256)
	b = append(append(b, decl.Key.Name...), 0)
	b = binary.BigEndian.AppendUint16(b, decl.Key.Type)
	b = binary.BigEndian.AppendUint32(b, decl.TTL)
	for _, rdata := range decl.Rdata {
		b = append(append(b, rdata...), 0)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
