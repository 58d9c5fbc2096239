package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// BundleKey is where a Secret of type kubernetes.io/tls has the authorities by which its owner verifies others, as
// cert-manager does it.
const BundleKey = "ca.crt"

// errNoAuthority is returned until the authority has been made.
var errNoAuthority = errors.New("no certificate authority yet")

// Issue mints a certificate and returns it as the data of a Secret of type kubernetes.io/tls: certificate, key and Bundle.
func (s State) Issue(now time.Time, subject Subject) (map[string][]byte, error) {
	if s.Signer == nil {
		return nil, errNoAuthority
	}
	leaf, err := s.Signer.Mint(now, DefaultPolicy.LeafLife, subject)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{corev1.TLSCertKey: leaf.CertPEM, corev1.TLSPrivateKeyKey: leaf.KeyPEM, BundleKey: s.Bundle()}, nil
}

// IsCurrent reports whether what Issue made before can stay: the key belongs to the certificate, the certificate is for exactly this
// subject, the present signer made it, it is not due, and the bundle is the present one.
func (s State) IsCurrent(data map[string][]byte, now time.Time, subject Subject) bool {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil || s.Signer == nil {
		return false
	}
	return isFor(pair.Leaf, subject) && pair.Leaf.CheckSignatureFrom(s.Signer.Cert) == nil && !isDue(pair.Leaf, now) &&
		bytes.Equal(data[BundleKey], s.Bundle())
}

func isFor(leaf *x509.Certificate, subject Subject) bool {
	var identity string
	for _, uri := range leaf.URIs {
		identity += uri.String()
	}
	return slices.Equal(leaf.DNSNames, subject.DNSNames) && identity == subject.Identity &&
		slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{subject.usage()})
}

// credentials are what Issue returned, ready for use.
type credentials struct {
	data  map[string][]byte
	pair  tls.Certificate
	roots *x509.CertPool
}

// parseCredentials reads what Issue returned.
func parseCredentials(data map[string][]byte) (*credentials, error) {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	certs, err := parseCerts(data[BundleKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", BundleKey, err)
	}
	c := &credentials{data: data, pair: pair, roots: x509.NewCertPool()}
	for _, cert := range certs {
		c.roots.AddCert(cert)
	}
	return c, nil
}

// ClientConfig is what a client connects with that has a certificate of Issue.
func ClientConfig(data map[string][]byte) (*tls.Config, error) {
	held, err := parseCredentials(data)
	if err != nil {
		return nil, err
	}
	return held.clientConfig(), nil
}

// clientConfig is what a client connects with. The certificate is sent whichever authorities the server names, so that a server that does
// not know ours says so.
func (c *credentials) clientConfig() *tls.Config {
	return &tls.Config{
		RootCAs:              c.roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.pair, nil },
		MinVersion:           tls.VersionTLS13,
	}
}
