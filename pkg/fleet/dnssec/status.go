package dnssec

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// StatusOf is how a zone is signed, from what its signer serves; nil when it is not and nothing is about to change that. It names keys
// for the parent only once all of the zone is signed with them.
func (s Signing) StatusOf(mirror *observe.Mirror) *v1beta1.DNSSECStatus {
	keys, policy := keySigningKeys(mirror), s.Policy
	if policy == "" || policy == clause.PolicyInsecure && len(keys) == 0 {
		return nil
	}
	status := StatusOf(mirror)
	status.Policy = policy
	return status
}

// StatusOf is how a zone is signed, without a policy, from what the server which signs it serves.
func StatusOf(mirror *observe.Mirror) *v1beta1.DNSSECStatus {
	keys, status := keySigningKeys(mirror), &v1beta1.DNSSECStatus{}
	if len(keys) == 0 || !IsWhole(mirror) {
		return status
	}
	status.Signed = true
	for _, key := range keys {
		ds := key.ToDS(dns.SHA256)
		status.DSRecords = append(status.DSRecords, fmt.Sprintf("%s %d IN DS %d %d %d %s",
			ds.Hdr.Name, ds.Hdr.Ttl, ds.KeyTag, ds.Algorithm, ds.DigestType, strings.ToUpper(ds.Digest)))
	}
	status.KeyTag, status.Algorithm = new(int64(keys[0].KeyTag())), dns.AlgorithmToString[keys[0].Algorithm]
	return status
}

// keySigningKeys are the keys of a zone that its parent may point to (RFC 4034 section 2.1.1, RFC 5011 section 2.1), in a stable order.
func keySigningKeys(mirror *observe.Mirror) []*dns.DNSKEY {
	set, _ := mirror.Get(rrset.Key{Name: mirror.Zone, Type: dns.TypeDNSKEY})
	var keys []*dns.DNSKEY
	for _, rdata := range set.Rdata {
		rr, err := rrset.ToRR(set.Key, set.TTL, rdata)
		if key, ok := rr.(*dns.DNSKEY); err == nil && ok && key.Flags&dns.SEP != 0 && key.Flags&dns.REVOKE == 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b *dns.DNSKEY) int { return cmp.Compare(a.KeyTag(), b.KeyTag()) })
	return keys
}

// EntryPoints returns the keys of a zone that its parents may point to, each by its name, those of them that its CDS records (RFC 7344) name,
// and what DS records name them.
func EntryPoints(mirror *observe.Mirror) (keys, announced []string, points dnssec.EntryPoints) {
	own := keySigningKeys(mirror)
	points = dnssec.EntryPointsOf(own)
	for _, key := range own {
		_, _, rdata := rrset.FromRR(key.ToDS(dns.SHA256))
		keys = append(keys, rdata)
	}
	set, _ := mirror.Get(rrset.Key{Name: mirror.Zone, Type: dns.TypeCDS})
	for _, rdata := range set.Rdata {
		canonical, err := rrset.Parse(rrset.Key{Name: mirror.Zone, Type: dns.TypeDS}, rdata)
		if name, known := points[canonical]; err == nil && known && !slices.Contains(announced, name) {
			announced = append(announced, name)
		}
	}
	return keys, announced, points
}

// Requested judges what a zone asks its parents for, of which they have some DS records by name (dnssec.Requested).
func Requested(mirror *observe.Mirror, published []string, now time.Time) (dnssec.Request, error) {
	var anchors []dns.RR
	for _, ds := range published {
		if rr, err := rrset.ToRR(rrset.Key{Name: mirror.Zone, Type: dns.TypeDS}, 0, ds); err == nil {
			anchors = append(anchors, rr)
		}
	}
	return dnssec.Requested(mirror.Zone, requestAt(mirror), anchors, dnssec.Clock{Now: now})
}

// requestAt are the records at the apex that a request is made of, with their signatures.
func requestAt(mirror *observe.Mirror) (apex []dns.RR) {
	for _, rrtype := range append(slices.Clone(requestTypes), dns.TypeRRSIG) {
		set, _ := mirror.Get(rrset.Key{Name: mirror.Zone, Type: rrtype})
		for _, rdata := range set.Rdata {
			rr, err := rrset.ToRR(set.Key, set.TTL, rdata)
			if sig, ok := rr.(*dns.RRSIG); err == nil && (!ok || slices.Contains(requestTypes, sig.TypeCovered)) && len(apex) < maxRequest {
				apex = append(apex, rr)
			}
		}
	}
	return apex
}

var requestTypes = []uint16{dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY}

// maxRequest bounds the records of a request; one of more lacks signatures.
const maxRequest = 128

// HighestTTL is how long resolvers keep what a zone has, in seconds.
func HighestTTL(mirror *observe.Mirror) (highest uint32) {
	highest = mirror.SOA.TTL
	for set := range mirror.All() {
		highest = max(highest, set.TTL)
	}
	return highest
}

// typeSigning is BIND's private type for how far the signing of a zone is: algorithm, key tag, removal, completion.
const typeSigning = 65534

// IsWhole reports whether the whole zone is signed: it has signatures and a chain of names, and no key that named is still signing with.
func IsWhole(mirror *observe.Mirror) bool {
	at := func(rrtype uint16) rrset.RRset {
		set, _ := mirror.Get(rrset.Key{Name: mirror.Zone, Type: rrtype})
		return set
	}
	chain := len(at(dns.TypeNSEC).Rdata) > 0 || len(at(dns.TypeNSEC3PARAM).Rdata) > 0
	signed := slices.ContainsFunc(at(dns.TypeRRSIG).Rdata, func(rdata string) bool { return strings.HasPrefix(rdata, "SOA ") })
	return chain && signed && !slices.ContainsFunc(at(typeSigning).Rdata, isSigningPending)
}

// isSigningPending reports whether a record of named's says that it still signs with a key: `\# 5 0D4C330001` says that it is done. A
// longer one is about a chain of NSEC3, of which the zone has none before it is complete.
func isSigningPending(rdata string) bool {
	fields := strings.Fields(rdata)
	if len(fields) < 3 {
		return false
	}
	state, err := hex.DecodeString(strings.Join(fields[2:], ""))
	return err == nil && len(state) == 5 && state[4] == 0
}

// SignedContent yields all of a signed copy but what named notes for itself: with the same keys it goes on from there. Each
// signature has the TTL of what it signs (RFC 4034 section 3): a name's signatures are no RRset with one TTL.
func SignedContent(mirror *observe.Mirror) iter.Seq[rrset.RRset] {
	return seq.FlatMap(mirror.All(), func(set rrset.RRset) iter.Seq[rrset.RRset] {
		switch set.Type {
		case typeSigning:
			return slices.Values[[]rrset.RRset](nil)
		case dns.TypeRRSIG:
			return slices.Values(signaturesBySignedTTL(set))
		}
		return slices.Values([]rrset.RRset{set})
	})
}

// signaturesBySignedTTL leaves out the signatures of named's own notes.
func signaturesBySignedTTL(set rrset.RRset) []rrset.RRset {
	var parts []rrset.RRset
	for _, rdata := range set.Rdata {
		rr, err := rrset.ToRR(set.Key, set.TTL, rdata)
		if sig, ok := rr.(*dns.RRSIG); err == nil && ok && sig.TypeCovered != typeSigning {
			parts = append(parts, rrset.RRset{Key: set.Key, TTL: sig.OrigTtl, Rdata: []string{rdata}})
		}
	}
	return parts
}
