package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"
)

// Authority signs certificates and keeps them, like its own, in a folder:
// NAME.crt and NAME.key.
type Authority struct {
	dir string
	ca  *keyPair
}

// EnsureAuthority opens the authority of that name, and makes it if need be.
func EnsureAuthority(dir, name string) (*Authority, error) {
	path := filepath.Join(dir, name)
	ca, ok, err := loadAuthority(path)
	if err != nil || ok {
		return &Authority{dir: dir, ca: ca}, err
	}
	ca, err = signCertificate(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "lockstep-cluster " + name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}, authorityLife, nil)
	if err != nil {
		return nil, err
	}
	return &Authority{dir: dir, ca: ca}, ca.saveFiles(path)
}

// Certificate is what a certificate has to say.
type Certificate struct {
	Name   string // of the files
	User   string // common name, a user to Kubernetes
	Groups []string
	Hosts  []string // DNS names and IP addresses; a server's
}

// Ensure makes the certificate unless there is one that says so and is good
// for a while.
func (a *Authority) Ensure(c Certificate) error {
	path := filepath.Join(a.dir, c.Name)
	old, ok, err := loadAuthority(path)
	if err != nil {
		return err
	}
	template := c.certificateTemplate()
	if ok && a.isCurrent(old.cert, template, time.Now()) {
		return nil
	}
	made, err := signCertificate(template, certificateLife, a.ca)
	if err != nil {
		return fmt.Errorf("making certificate %s: %w", c.Name, err)
	}
	return made.saveFiles(path)
}

func (c Certificate) certificateTemplate() *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: c.User, Organization: c.Groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, h := range c.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	if len(c.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return t
}

// isCurrent reports whether a certificate can still be used for the template.
func (a *Authority) isCurrent(old, template *x509.Certificate, now time.Time) bool {
	return old.CheckSignatureFrom(a.ca.cert) == nil &&
		old.NotAfter.Sub(now) > renewBefore &&
		old.Subject.CommonName == template.Subject.CommonName &&
		slices.Equal(old.Subject.Organization, template.Subject.Organization) &&
		slices.Equal(old.DNSNames, template.DNSNames) &&
		slices.EqualFunc(old.IPAddresses, template.IPAddresses, net.IP.Equal)
}
