package zone

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// dnssecStatus tells how a zone is signed, from what its signer serves; nil when it is not and nothing is about to change
// that. The parent is to hear of keys only once all of the zone is signed with them.
func dnssecStatus(mirror *observe.Mirror, policy string) *v1beta1.DNSSECStatus {
	keys := keySigningKeys(mirror)
	if policy == "" || policy == named.PolicyInsecure && len(keys) == 0 {
		return nil
	}
	s := &v1beta1.DNSSECStatus{Policy: policy}
	if len(keys) == 0 || !signedThrough(mirror) {
		return s
	}
	s.Signed = true
	for _, key := range keys {
		ds := key.ToDS(dns.SHA256)
		s.DSRecords = append(s.DSRecords, fmt.Sprintf("%s %d IN DS %d %d %d %s",
			ds.Hdr.Name, ds.Hdr.Ttl, ds.KeyTag, ds.Algorithm, ds.DigestType, strings.ToUpper(ds.Digest)))
	}
	tag := int64(keys[0].KeyTag())
	s.KeyTag, s.Algorithm = &tag, dns.AlgorithmToString[keys[0].Algorithm]
	return s
}

// keySigningKeys are the keys of a zone that its parent may point to (RFC 4034 section 2.1.1, RFC 5011 section 2.1), in a
// stable order.
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

// typeSigning is BIND's private type for how far the signing of a zone is: algorithm, key tag, removal, completion.
const typeSigning = 65534

// signedThrough tells whether the zone has signatures and a chain of names, and no key that named is still signing with.
func signedThrough(mirror *observe.Mirror) bool {
	at := func(rrtype uint16) rrset.RRset {
		set, _ := mirror.Get(rrset.Key{Name: mirror.Zone, Type: rrtype})
		return set
	}
	chain := len(at(dns.TypeNSEC).Rdata) > 0 || len(at(dns.TypeNSEC3PARAM).Rdata) > 0
	signed := slices.ContainsFunc(at(dns.TypeRRSIG).Rdata, func(rdata string) bool { return strings.HasPrefix(rdata, "SOA ") })
	return chain && signed && !slices.ContainsFunc(at(typeSigning).Rdata, underWay)
}

// underWay tells whether a record of named's says that it still signs with a key: `\# 5 0D4C330001` says that it is done. A
// longer one is about a chain of NSEC3, of which the zone has none before it is complete.
func underWay(rdata string) bool {
	fields := strings.Fields(rdata)
	if len(fields) < 3 {
		return false
	}
	state, err := hex.DecodeString(strings.Join(fields[2:], ""))
	return err == nil && len(state) == 5 && state[4] == 0
}

// copied yields all of a signed copy but what named notes for itself: with the same keys it goes on from there.
func copied(mirror *observe.Mirror) func(yield func(rrset.RRset) bool) {
	return func(yield func(rrset.RRset) bool) {
		for set := range mirror.All() {
			if set.Type == typeSigning {
				continue
			}
			if set.Type == dns.TypeRRSIG {
				for _, part := range bySignedTTL(set) {
					if !yield(part) {
						return
					}
				}
				continue
			}
			if !yield(set) {
				return
			}
		}
	}
}

// bySignedTTL gives each signature the TTL of what it signs (RFC 4034 section 3): a name's signatures are no RRset with one
// TTL. Those of named's own notes are left out.
func bySignedTTL(set rrset.RRset) []rrset.RRset {
	var parts []rrset.RRset
	for _, rdata := range set.Rdata {
		rr, err := rrset.ToRR(set.Key, set.TTL, rdata)
		if sig, ok := rr.(*dns.RRSIG); err == nil && ok && sig.TypeCovered != typeSigning {
			parts = append(parts, rrset.RRset{Key: set.Key, TTL: sig.OrigTtl, Rdata: []string{rdata}})
		}
	}
	return parts
}
