package dnssec

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Keys are the keys of a zone, and whether a resolver accepts them. They do not change.
type Keys struct {
	zone    string
	keys    map[keyID][]*dns.DNSKEY
	verdict Verdict
}

// Trust judges the DNSKEY RRset of a zone. The answer holds it with its signatures. The anchors are the zone's DS records, which the
// caller has validated, or DNSKEY records that the caller trusts; without any, the zone is Insecure. Records of other names and types are
// ignored in both.
func Trust(zone string, answer, anchors []dns.RR, clock Clock) *Keys {
	return trust(zone, answer, anchors, clock, &work{})
}

func trust(zone string, answer, anchors []dns.RR, clock Clock, w *work) *Keys {
	k, s := keysOf(zone, answer)
	v := newVerifier(k.zone, map[keyID][]*dns.DNSKEY{}, clock, w)
	k.verdict = v.conclude(k.vouch(v, s, anchors))
	return k
}

// keysOf takes the keys of a zone from an answer, with their RRset; nil if there is none.
func keysOf(zone string, answer []dns.RR) (*Keys, *set) {
	k := &Keys{zone: canonical(zone), keys: map[keyID][]*dns.DNSKEY{}}
	s := groupRecords(answer, k.zone).find(k.zone, dns.TypeDNSKEY)
	for _, key := range keysIn(s) {
		id := keyID{key.Algorithm, key.KeyTag()}
		k.keys[id] = append(k.keys[id], key)
	}
	return k, s
}

// vouch accepts all keys if one that an anchor names has signed them (RFC 4035 section 5.2).
func (k *Keys) vouch(v *verifier, s *set, anchors []dns.RR) *finding {
	supported, f := supportedAnchors(anchors, k.zone)
	switch {
	case f != nil:
		return f
	case s == nil:
		return bogus(dns.ExtendedErrorCodeDNSKEYMissing, "%s has no DNSKEY record", k.zone)
	}
	if f := k.name(v, supported); f != nil {
		return f
	}
	return v.verify(s)
}

// name gives a verifier the keys that anchors name.
func (k *Keys) name(v *verifier, anchors []*dns.DS) *finding {
	for _, ds := range anchors {
		id := keyID{ds.Algorithm, ds.KeyTag}
		for _, key := range k.keys[id] {
			if v.work.hashes >= maxHashes {
				return errWork("digests of keys", maxHashes)
			}
			v.work.hashes++
			if isUsable(key) && sameDigest(key, ds) && !slices.Contains(v.keys[id], key) {
				v.keys[id] = append(v.keys[id], key)
			}
		}
	}
	if len(v.keys) == 0 {
		return bogus(dns.ExtendedErrorCodeDNSKEYMissing, "%s has no usable key that one of its DS records with the strongest digest type, or one of its trust anchors, names", k.zone)
	}
	return nil
}

func sameDigest(key *dns.DNSKEY, ds *dns.DS) bool {
	digest := key.ToDS(ds.DigestType)
	return digest != nil && strings.EqualFold(digest.Digest, ds.Digest)
}

// supportedAnchors returns the DS records of a zone whose algorithm and digest are supported. Without any, the zone is Insecure (RFC 6840
// section 5.2). Of several digest types the strongest counts alone: unbound takes no other beside it, and SHA-1 does not count for anybody then
// (RFC 4509 section 3). A trusted DNSKEY record counts in any case.
func supportedAnchors(anchors []dns.RR, zone string) ([]*dns.DS, *finding) {
	var all, trusted []*dns.DS
	for _, rr := range anchors {
		if canonical(rr.Header().Name) != zone {
			continue
		}
		switch rr := rr.(type) {
		case *dns.DS:
			all = append(all, rr)
		case *dns.DNSKEY:
			if ds := rr.ToDS(dns.SHA256); ds != nil {
				trusted = append(trusted, ds)
			}
		}
	}
	if len(all)+len(trusted) == 0 {
		return nil, insecure(dns.ExtendedErrorCodeOther, "%s has no DS record", zone)
	}
	isUnknown := func(ds *dns.DS) bool { return !isSupported(ds.Algorithm) }
	known := slices.DeleteFunc(all, isUnknown)
	trusted = slices.DeleteFunc(trusted, isUnknown)
	if len(known)+len(trusted) == 0 {
		return nil, insecure(dns.ExtendedErrorCodeUnsupportedDNSKEYAlgorithm, "no DS record of %s has an algorithm that is supported", zone)
	}
	known = slices.DeleteFunc(known, func(ds *dns.DS) bool { return !isSupportedDigest(ds.DigestType) })
	if len(known)+len(trusted) == 0 {
		return nil, insecure(dns.ExtendedErrorCodeUnsupportedDSDigestType, "no DS record of %s has a digest type that is supported", zone)
	}
	strongest := uint8(0) // Their numbers are in the order of their strength.
	for _, ds := range known {
		strongest = max(strongest, ds.DigestType)
	}
	known = slices.DeleteFunc(known, func(ds *dns.DS) bool { return ds.DigestType != strongest })
	return append(known, trusted...), nil
}

// Verdict is what a resolver makes of the DNSKEY RRset.
func (k *Keys) Verdict() Verdict { return k.verdict }

// isSupported reports whether signatures of an algorithm can be verified: those of RFC 8624 except ED448, which miekg/dns lacks.
func isSupported(algorithm uint8) bool {
	switch algorithm {
	case dns.RSASHA1, dns.RSASHA1NSEC3SHA1, dns.RSASHA256, dns.RSASHA512, dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.ED25519:
		return true
	}
	return false
}

func isSupportedDigest(digest uint8) bool {
	return digest == dns.SHA1 || digest == dns.SHA256 || digest == dns.SHA384
}

// isUsable is true for zone keys (RFC 4034 section 2.1) that are not revoked: a revoked key vouches for nothing (RFC 5011 section 2.1).
func isUsable(key *dns.DNSKEY) bool {
	return key.Flags&dns.ZONE != 0 && key.Flags&dns.REVOKE == 0 && key.Protocol == 3
}

// isBelow is true for names below an ancestor.
func isBelow(name, ancestor string) bool {
	return name != ancestor && rrset.IsSubdomain(name, ancestor)
}
