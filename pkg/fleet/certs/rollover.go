package certs

import (
	"bytes"
	"crypto/x509"
	"time"
)

// Policy says how long certificates live.
type Policy struct {
	// CALife is an authority's life; its successor is made when two thirds of it are over.
	CALife time.Duration
	// LeafLife is the life of a certificate that an authority issues, and how long a retired authority stays trusted. The last
	// third of it is how long everything works without a controller.
	LeafLife time.Duration
	// Overlap is how long a new authority is trusted before the first certificate is signed with it.
	Overlap time.Duration
}

// DefaultPolicy is what the program uses.
var DefaultPolicy = Policy{CALife: 365 * 24 * time.Hour, LeafLife: 30 * 24 * time.Hour, Overlap: time.Hour}

// State is the authority at a moment, as the Secret holds it.
type State struct {
	// Signer signs certificates; nil before there is any authority.
	Signer *Authority
	// Since is when Signer began to sign.
	Since time.Time
	// Next is published and will sign later; nil outside of a roll-over.
	Next *Authority
	// Retired no longer sign and are still trusted.
	Retired []*x509.Certificate
}

// Bundle is every trusted certificate as PEM: what a verifier must have in its caBundle.
func (s State) Bundle() []byte {
	var bundle []byte
	for _, cert := range s.trustedCerts() {
		bundle = append(bundle, encodeCert(cert)...)
	}
	return bundle
}

func (s State) trustedCerts() []*x509.Certificate {
	var certs []*x509.Certificate
	if s.Signer != nil {
		certs = append(certs, s.Signer.Cert)
	}
	if s.Next != nil {
		certs = append(certs, s.Next.Cert)
	}
	return append(certs, s.Retired...)
}

// Advance makes the state that should be stored now; changed is false when it is the given one. published says that every verifier has
// the Bundle of the given state. Advance makes at most one step, so it is called again after the result has been stored and published. A
// signer that is not valid at all (it expired, or the clock has been set back to before its making) has nothing to protect: its successor
// signs as soon as it is published, without waiting for the overlap.
func (p Policy) Advance(s State, now time.Time, published bool) (next State, changed bool, err error) {
	switch {
	case s.Signer == nil:
		authority, err := newAuthority(now, p.CALife)
		return State{Signer: authority, Since: now}, true, err
	case s.Next == nil && isDue(s.Signer.Cert, now), s.Next != nil && !isValid(s.Next.Cert, now):
		s.Next, err = newAuthority(now, p.CALife)
		return s, true, err
	case s.Next != nil && published && p.mayPromote(s, now):
		return s.promoteNext(now), true, nil
	}
	return p.dropExpired(s, now)
}

func (p Policy) mayPromote(s State, now time.Time) bool {
	return !isValid(s.Signer.Cert, now) || !now.Before(s.Next.createdAt().Add(p.Overlap))
}

// promoteNext makes Next the signer.
func (s State) promoteNext(now time.Time) State {
	return State{
		Signer:  s.Next,
		Since:   now,
		Retired: append([]*x509.Certificate{s.Signer.Cert}, s.Retired...),
	}
}

// dropExpired drops retired authorities of which no certificate can be left.
func (p Policy) dropExpired(s State, now time.Time) (State, bool, error) {
	var kept []*x509.Certificate
	for _, cert := range s.Retired {
		if now.Before(cert.NotAfter) && now.Before(s.Since.Add(p.LeafLife)) {
			kept = append(kept, cert)
		}
	}
	changed := len(kept) != len(s.Retired)
	s.Retired = kept
	return s, changed, nil
}

// Replace makes the state that follows one whose Secret has been deleted. The old signer goes on until its successor is published, so
// nothing breaks; and it is succeeded, because deleting the Secret is how a person asks for a new authority.
func (p Policy) Replace(s State, now time.Time) (State, error) {
	if s.Next != nil || s.Signer == nil {
		return s, nil
	}
	var err error
	s.Next, err = newAuthority(now, p.CALife)
	return s, err
}

// retiredCerts are the certificates of the bundle that are neither the signer's nor the next one's.
func retiredCerts(bundle []*x509.Certificate, signer, next *Authority) []*x509.Certificate {
	var certs []*x509.Certificate
	for _, cert := range bundle {
		if !holdsCert(signer, cert) && !holdsCert(next, cert) {
			certs = append(certs, cert)
		}
	}
	return certs
}

func holdsCert(a *Authority, cert *x509.Certificate) bool {
	return a != nil && bytes.Equal(a.Cert.Raw, cert.Raw)
}
