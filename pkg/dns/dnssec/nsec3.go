package dnssec

import (
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// maxIterations is how many additional iterations of a hash are computed. Validating resolvers take what has more for Insecure once its
// signatures are verified (RFC 9276 section 3.2). BIND, Knot Resolver and Unbound have agreed on this limit.
const maxIterations = 50

// nsec3s are verified NSEC3 records of one chain (RFC 5155 section 8).
type nsec3s struct {
	*verifier
	iterations uint16
	salt       string
	spans      []hashedSpan
	hashes     map[string]string
}

// hashedSpan is an NSEC3 record: there is no hash of a name between the owner and the next one, or with opt-out none of a name that is
// signed.
type hashedSpan struct {
	owner, next string
	types       types
	optOut      bool
}

const (
	hashLength = 32 // A SHA-1 hash in base32hex.
	optOutFlag = 1
)

// newNSEC3s takes the records with the parameters of the first one. What has an unknown hash or unknown flags is ignored (sections 8.1 and
// 8.2).
func newNSEC3s(records []*dns.NSEC3, v *verifier) (denial, *finding) {
	n := &nsec3s{verifier: v, hashes: map[string]string{}}
	for _, rr := range records {
		if rr.Hash != dns.SHA1 || rr.Flags > optOutFlag || len(rr.NextDomain) != hashLength || rrset.ParentName(rr.Hdr.Name) != v.zone {
			continue
		}
		if len(n.spans) == 0 {
			n.iterations, n.salt = rr.Iterations, rr.Salt
		}
		if rr.Iterations != n.iterations || !strings.EqualFold(rr.Salt, n.salt) {
			continue
		}
		owner, _, _ := strings.Cut(rr.Hdr.Name, ".")
		n.spans = append(n.spans, hashedSpan{owner, strings.ToLower(rr.NextDomain), rr.TypeBitMap, rr.Flags == optOutFlag})
	}
	if n.iterations > maxIterations {
		return nil, insecure(dns.ExtendedErrorCodeUnsupportedNSEC3IterValue, "the NSEC3 records have %d iterations; resolvers follow at most %d", n.iterations, maxIterations)
	}
	return n, nil
}

// hash is the hash of a name, empty if the message has needed too many.
func (n *nsec3s) hash(name string) string {
	if h, ok := n.hashes[name]; ok {
		return h
	}
	if n.work.hashes >= maxHashes {
		return ""
	}
	n.work.hashes++
	h := strings.ToLower(dns.HashName(name, dns.SHA1, n.iterations, n.salt))
	n.hashes[name] = h
	return h
}

func (n *nsec3s) match(name string) (s hashedSpan, ok bool) {
	h := n.hash(name)
	for _, s := range n.spans {
		if h != "" && s.owner == h {
			return s, true
		}
	}
	return hashedSpan{}, false
}

func (n *nsec3s) cover(name string) (s hashedSpan, ok bool) {
	h := n.hash(name)
	for _, s := range n.spans {
		inside := s.owner < h && h < s.next
		if s.owner >= s.next { // The last of the chain.
			inside = h > s.owner || h < s.next
		}
		if h != "" && inside {
			return s, true
		}
	}
	return hashedSpan{}, false
}

// encloser proves the closest encloser of a name that does not exist: a matching record for it, and a covering one for the name one label
// longer, the next closer name (section 8.3).
func (n *nsec3s) encloser(name string) (closest string, covering hashedSpan, failed *finding) {
	for closer := name; closer != n.zone; closer = closest {
		closest = rrset.ParentName(closer)
		s, ok := n.match(closest)
		switch {
		case !ok:
			continue
		case s.types.hides():
			return "", covering, errNoProof("the closest encloser %s is a delegation or has a DNAME record", closest)
		}
		if covering, ok = n.cover(closer); !ok {
			return "", covering, errNoProof("no NSEC3 record proves that %s does not exist", closer)
		}
		return closest, covering, nil
	}
	return "", covering, errNoProof("no NSEC3 record proves which ancestor of %s exists", name)
}

// weakened is the finding about a proof that a span with opt-out is part of (section 9.2).
func weakened(s hashedSpan, name string) *finding {
	if !s.optOut {
		return nil
	}
	return insecure(dns.ExtendedErrorCodeOther, "opt-out: %s can be an unsigned delegation, or below one", name)
}

func (n *nsec3s) proveNoName(name string) (weak, failed *finding) {
	if _, ok := n.match(name); ok {
		return nil, errNoProof("an NSEC3 record proves that %s exists", name)
	}
	closest, covering, f := n.encloser(name)
	if f != nil {
		return nil, f
	}
	if _, ok := n.cover(wildcardBelow(closest)); !ok {
		return nil, errNoProof("no NSEC3 record proves that %s does not exist", wildcardBelow(closest))
	}
	return weakened(covering, name), nil
}

// proveNoData follows sections 8.5 to 8.7. A name without an NSEC3 record of its own that opt-out covers can be an unsigned delegation,
// or have only such names below it.
func (n *nsec3s) proveNoData(name string, rrtype uint16) (weak, failed *finding) {
	if s, ok := n.match(name); ok {
		if !s.types.deny(rrtype) {
			return nil, errNoProof("the NSEC3 record of %s does not deny %s", name, rrset.TypeName(rrtype))
		}
		return nil, nil
	}
	closest, covering, f := n.encloser(name)
	if f != nil {
		return nil, f
	}
	if s, ok := n.match(wildcardBelow(closest)); (ok && s.types.deny(rrtype)) || covering.optOut {
		return weakened(covering, name), nil
	}
	return nil, errNoProof("no NSEC3 record proves that %s has no %s", name, rrset.TypeName(rrtype))
}

func (n *nsec3s) proveNoDS(name string) (weak, failed *finding) {
	if s, ok := n.match(name); ok {
		if !s.types.isDelegation() || !s.types.deny(dns.TypeDS) {
			return nil, errNoProof("the NSEC3 record of %s is not that of a delegation without DS records", name)
		}
		return nil, nil
	}
	_, covering, f := n.encloser(name)
	if f == nil && !covering.optOut {
		f = errNoProof("no NSEC3 record proves that the delegation of %s has no DS record", name)
	}
	return nil, f
}

func (n *nsec3s) proveExpansion(name string, labels int) (weak, failed *finding) {
	closer := ancestor(name, labels+1)
	covering, ok := n.cover(closer)
	if !ok {
		return nil, errNoProof("no NSEC3 record proves that %s does not exist beside the wildcard", closer)
	}
	return weakened(covering, name), nil
}
