package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"
)

// backdate is how far before its making a certificate's validity begins, so that a verifier whose clock is behind ours
// accepts it.
const backdate = time.Hour

// Authority is a certificate authority: a self-signed ECDSA P-256 certificate and its key.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// Subject is whom a leaf is for: a server or a client, never both, so that no server can pass for a client.
type Subject struct {
	// DNSNames are those of a server.
	DNSNames []string
	// Identity is the URI of a client, in the form of a SPIFFE ID.
	Identity string
}

// uris are the Identity as a certificate holds it (RFC 5280 section 4.2.1.6), none for a server.
func (s Subject) uris() ([]*url.URL, error) {
	if s.Identity == "" {
		return nil, nil
	}
	uri, err := url.Parse(s.Identity)
	if err != nil {
		return nil, fmt.Errorf("the identity of a client: %w", err)
	}
	return []*url.URL{uri}, nil
}

// usage is what a leaf may be used for (RFC 5280 section 4.2.1.12).
func (s Subject) usage() x509.ExtKeyUsage {
	if s.Identity == "" {
		return x509.ExtKeyUsageServerAuth
	}
	return x509.ExtKeyUsageClientAuth
}

// Leaf is the certificate of a server or client with its key, both PEM.
type Leaf struct {
	// CertPEM and KeyPEM are what tls.X509KeyPair takes.
	CertPEM, KeyPEM []byte
	// Cert is the parsed certificate of CertPEM.
	Cert *x509.Certificate
}

// newAuthority returns an authority that is valid for life from now on.
func newAuthority(now time.Time, life time.Duration) (*Authority, error) {
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The serial number makes the subject unique, so that a verifier with two authorities in its bundle picks the right one.
		Subject:               pkix.Name{CommonName: "lockstep-ca", SerialNumber: serial.Text(16)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	cert, err := signCert(template, key, &Authority{template, key})
	if err != nil {
		return nil, err
	}
	return &Authority{Cert: cert, Key: key}, nil
}

func (a *Authority) createdAt() time.Time { return a.Cert.NotBefore.Add(backdate) }

// Mint signs a new certificate for the subject, valid for life from now on but never longer than the authority.
func (a *Authority) Mint(now time.Time, life time.Duration, subject Subject) (*Leaf, error) {
	if (len(subject.DNSNames) == 0) == (subject.Identity == "") {
		return nil, errors.New("a certificate needs either DNS names or the identity of a client")
	}
	uris, err := subject.uris()
	if err != nil {
		return nil, err
	}
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "lockstep-leaf"},
		DNSNames:     subject.DNSNames,
		URIs:         uris,
		NotBefore:    slices.MaxFunc([]time.Time{now.Add(-backdate), a.Cert.NotBefore}, time.Time.Compare),
		NotAfter:     slices.MinFunc([]time.Time{now.Add(life), a.Cert.NotAfter}, time.Time.Compare),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{subject.usage()},
	}
	cert, err := signCert(template, key, a)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &Leaf{CertPEM: encodeCert(cert), KeyPEM: keyPEM, Cert: cert}, nil
}

// isValid reports whether the certificate may be used at this time. It is false as well when the clock has been set back to before the
// certificate's making.
func isValid(cert *x509.Certificate, now time.Time) bool {
	return !now.Before(cert.NotBefore) && now.Before(cert.NotAfter)
}

// isDue reports whether the certificate should be replaced: two thirds of its life are over, or it is not valid now.
func isDue(cert *x509.Certificate, now time.Time) bool {
	return !isValid(cert, now) || !now.Before(renewalTime(cert))
}

// renewalTime is when two thirds of the certificate's life are over.
func renewalTime(cert *x509.Certificate) time.Time {
	made := cert.NotBefore.Add(backdate)
	return made.Add(cert.NotAfter.Sub(made) / 3 * 2)
}

// newKey returns the key of a new certificate, and its serial number.
func newKey() (*ecdsa.PrivateKey, *big.Int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating the key of a certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // RFC 5280 section 4.1.2.2: at most 20 octets, positive
	if err != nil {
		return nil, nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	return key, serial.Add(serial, big.NewInt(1)), nil
}

// signCert signs the certificate of a key.
func signCert(template *x509.Certificate, key *ecdsa.PrivateKey, by *Authority) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, by.Cert, key.Public(), by.Key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	return cert, nil
}

func encodeCert(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// parseCerts reads every certificate of a PEM bundle.
func parseCerts(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block %q where a certificate should be", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading a certificate: %w", err)
		}
		certs = append(certs, cert)
	}
	return certs, nil
}

// parseAuthority reads an authority from the PEM of its certificate and key, and checks that they belong together.
func parseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certs, err := parseCerts(certPEM)
	if err != nil {
		return nil, err
	}
	if len(certs) != 1 {
		return nil, fmt.Errorf("%d certificates where one should be", len(certs))
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("no private key in PEM form")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading a private key: %w", err)
	}
	if !certs[0].IsCA {
		return nil, errors.New("the certificate is not an authority's")
	}
	if !key.PublicKey.Equal(certs[0].PublicKey) {
		return nil, errors.New("the private key does not belong to the certificate")
	}
	return &Authority{Cert: certs[0], Key: key}, nil
}
