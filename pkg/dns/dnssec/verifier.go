package dnssec

import (
	"encoding/base64"
	"maps"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const (
	// maxVerifications bounds the signatures that are verified for one message (KeyTrap, CVE-2023-50387). An honest message needs two
	// for each of at most maxChain names of a chain, and four at its end. More are left for colliding key tags. One of an RRset of more
	// records than recordsPerVerification counts several times.
	maxVerifications       = 64
	recordsPerVerification = 100
	// maxHashes bounds the names that are hashed for one message, each up to maxIterations+1 times (CVE-2023-50868), and the digests of
	// keys. An honest message needs one for each label of a name, of which there are at most 127, and one for each name of a chain.
	maxHashes = 160
)

// work counts what costs time.
type work struct{ verifications, hashes int }

// errWork is the finding about a message that would cost too much.
func errWork(what string, limit int) *finding {
	return bogus(dns.ExtendedErrorCodeDNSBogus, "the answer needs more than %d %s", limit, what)
}

// keyID is how a signature names its key. Several keys can share one.
type keyID struct {
	algorithm uint8
	tag       uint16
}

// verifier verifies RRsets with the keys of a zone, and keeps what the accepted signatures say.
type verifier struct {
	zone    string
	keys    map[keyID][]*dns.DNSKEY
	clock   Clock
	work    *work
	expires time.Time
	tags    map[uint16]bool
}

func newVerifier(zone string, keys map[keyID][]*dns.DNSKEY, clock Clock, w *work) *verifier {
	return &verifier{zone: zone, keys: keys, clock: clock, work: w, tags: map[uint16]bool{}}
}

func (v *verifier) sortedTags() []uint16 { return slices.Sorted(maps.Keys(v.tags)) }

// verify accepts an RRset with one valid signature, whatever the others are (RFC 6840 sections 5.4 and 5.11). Those that expire last are
// tried first. If none is valid, it returns the finding about the signature that passed most checks.
func (v *verifier) verify(s *set) *finding {
	if len(s.signatures) == 0 {
		return bogus(dns.ExtendedErrorCodeRRSIGsMissing, "%s has no signature", s.Key)
	}
	slices.SortStableFunc(s.signatures, func(a, b *dns.RRSIG) int {
		return int(int32(b.Expiration - a.Expiration)) //nolint:gosec // Serial arithmetic is modulo 2^32.
	})
	var best *finding
	passed := -1
	for _, signature := range s.signatures {
		n, f := v.check(s, signature)
		if f == nil {
			v.accept(s, signature)
			return nil
		}
		if n > passed {
			best, passed = f, n
		}
		if v.work.verifications+s.cost() > maxVerifications {
			return errWork("verifications of signatures", maxVerifications)
		}
	}
	return best
}

func (v *verifier) accept(s *set, signature *dns.RRSIG) {
	s.labels = int(signature.Labels)
	v.tags[signature.KeyTag] = true
	if at := v.timeOf(signature.Expiration); v.expires.IsZero() || at.Before(v.expires) {
		v.expires = at
	}
}

// check returns how many checks a signature passes, and the finding about the next one (RFC 4035 section 5.3.1). The cheap ones are first.
func (v *verifier) check(s *set, signature *dns.RRSIG) (passed int, f *finding) {
	checks := []func(*set, *dns.RRSIG) *finding{v.checkForm, checkAlgorithm, v.checkKey, v.checkTime, v.checkSignature}
	for i, check := range checks {
		if f := check(s, signature); f != nil {
			return i, f
		}
	}
	return len(checks), nil
}

func (v *verifier) checkForm(s *set, signature *dns.RRSIG) *finding {
	switch signer := canonical(signature.SignerName); {
	case signer == v.zone && int(signature.Labels) <= countLabels(s.Name) && int(signature.Labels) >= countLabels(v.zone):
		return nil
	case signer == v.zone:
		return bogus(dns.ExtendedErrorCodeDNSBogus, "the signature of %s covers %d labels, more than the name or fewer than the zone has", s.Key, signature.Labels)
	case rrset.IsSubdomain(signer, v.zone) && rrset.IsSubdomain(s.Name, signer):
		return unknown("%s is in the zone %s", s.Key, signer)
	default:
		return bogus(dns.ExtendedErrorCodeRRSIGsMissing, "%s is signed by %s, not by %s", s.Key, signer, v.zone)
	}
}

func checkAlgorithm(s *set, signature *dns.RRSIG) *finding {
	if isSupported(signature.Algorithm) {
		return nil
	}
	return bogus(dns.ExtendedErrorCodeUnsupportedDNSKEYAlgorithm, "%s is signed with algorithm %d only, which is not supported", s.Key, signature.Algorithm)
}

func (v *verifier) checkKey(s *set, signature *dns.RRSIG) *finding {
	keys := v.keys[keyID{signature.Algorithm, signature.KeyTag}]
	switch {
	case slices.ContainsFunc(keys, isUsable):
		return nil
	case slices.ContainsFunc(keys, func(k *dns.DNSKEY) bool { return k.Flags&dns.ZONE == 0 }):
		return bogus(dns.ExtendedErrorCodeNoZoneKeyBitSet, "%s is signed with key %d, which is no zone key", s.Key, signature.KeyTag)
	case len(keys) > 0:
		return bogus(dns.ExtendedErrorCodeDNSKEYMissing, "%s is signed with key %d, which is revoked or of another protocol", s.Key, signature.KeyTag)
	}
	return bogus(dns.ExtendedErrorCodeDNSKEYMissing, "%s is signed with key %d, which %s does not have or which nothing vouches for", s.Key, signature.KeyTag, v.zone)
}

// checkTime compares by serial arithmetic (RFC 4034 section 3.1.5).
func (v *verifier) checkTime(s *set, signature *dns.RRSIG) *finding {
	now := uint32(v.clock.Now.Unix()) //nolint:gosec // Serial arithmetic is modulo 2^32.
	from, to := v.timeOf(signature.Inception).UTC(), v.timeOf(signature.Expiration).UTC()
	switch {
	case rrset.SerialLess(signature.Expiration, signature.Inception):
		return bogus(dns.ExtendedErrorCodeSignatureExpiredBeforeValid, "the signature of %s expires %s, before it becomes valid", s.Key, to.Format(time.RFC3339))
	case rrset.SerialLess(signature.Expiration, now):
		return bogus(dns.ExtendedErrorCodeSignatureExpired, "the signature of %s expired %s", s.Key, to.Format(time.RFC3339))
	case rrset.SerialLess(now, signature.Inception):
		return bogus(dns.ExtendedErrorCodeSignatureNotYetValid, "the signature of %s becomes valid %s", s.Key, from.Format(time.RFC3339))
	}
	return nil
}

// timeOf is the time nearest to now that a field of a signature can mean.
func (v *verifier) timeOf(seconds uint32) time.Time {
	now := v.clock.Now.Unix()
	return time.Unix(now+int64(int32(seconds-uint32(now))), 0) //nolint:gosec // Serial arithmetic is modulo 2^32.
}

func (v *verifier) checkSignature(s *set, signature *dns.RRSIG) *finding {
	for _, key := range v.keys[keyID{signature.Algorithm, signature.KeyTag}] {
		if !isUsable(key) || !hasSignatureLength(signature) {
			continue
		}
		if v.work.verifications+s.cost() > maxVerifications {
			return errWork("verifications of signatures", maxVerifications)
		}
		v.work.verifications += s.cost()
		if signature.Verify(key, s.records) == nil {
			return nil
		}
	}
	return bogus(dns.ExtendedErrorCodeDNSBogus, "the signature of %s with key %d is wrong", s.Key, signature.KeyTag)
}

// hasSignatureLength is false for signatures of ECDSA that are not two numbers of the right length (RFC 6605 section 4), and for those that
// miekg/dns cannot decode.
func hasSignatureLength(signature *dns.RRSIG) bool {
	raw, err := base64.StdEncoding.DecodeString(signature.Signature)
	switch signature.Algorithm {
	case dns.ECDSAP256SHA256:
		return err == nil && len(raw) == 64
	case dns.ECDSAP384SHA384:
		return err == nil && len(raw) == 96
	}
	return err == nil
}
