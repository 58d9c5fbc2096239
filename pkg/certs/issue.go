package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// Pool returns the Bundle in the form that a verifier of this program takes.
func (s State) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range s.trustedCerts() {
		pool.AddCert(cert)
	}
	return pool
}

// Issue mints a serving certificate for a server that cannot read the authority itself, with the life of all others.
func (s State) Issue(now time.Time, dnsNames ...string) (*Leaf, error) {
	if s.Signer == nil {
		return nil, ErrNoCertificate
	}
	return s.Signer.Mint(now, DefaultPolicy.LeafLife, dnsNames)
}

// IsUsable reports whether a certificate that was issued before can stay: its key belongs to it, it is for exactly these DNS
// names, the present signer made it, and it is not due.
func (s State) IsUsable(certPEM, keyPEM []byte, now time.Time, dnsNames ...string) bool {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil || s.Signer == nil {
		return false
	}
	return slices.Equal(pair.Leaf.DNSNames, dnsNames) && pair.Leaf.CheckSignatureFrom(s.Signer.Cert) == nil && !isDue(pair.Leaf, now)
}
