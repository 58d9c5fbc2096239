// Package pki makes the certificates of a cluster: certification authorities
// that last, and certificates that are made again when they near their end or
// no longer say what is asked for.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is how much of its life a certificate must have left.
	renewBefore = 30 * 24 * time.Hour
	// backdate allows for clocks that are a little behind.
	backdate = time.Hour
)

// keyPair is a certificate with its key.
type keyPair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// EnsureKey makes a key pair for signing service account tokens, unless there
// is one: the private key in path.key, the public one in path.pub.
func EnsureKey(path string) error {
	if _, err := os.Stat(path + ".pub"); err == nil {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	if err := writeKey(path+".key", key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return writePEM(path+".pub", "PUBLIC KEY", der, 0o644)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// signCertificate makes a certificate from the template, signed by the parent, or by
// itself if there is none.
func signCertificate(template *x509.Certificate, life time.Duration, parent *keyPair) (*keyPair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-backdate), now.Add(life)
	if parent == nil {
		parent = &keyPair{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.cert, &key.PublicKey, parent.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", template.Subject, err)
	}
	cert, err := x509.ParseCertificate(der)
	return &keyPair{cert: cert, key: key}, err
}

// loadAuthority reads path.crt and path.key, and reports whether both are there.
func loadAuthority(path string) (*keyPair, bool, error) {
	certDER, err := readPEM(path + ".crt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	keyDER, err := readPEM(path + ".key")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s.crt: %w", path, err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s.key: %w", path, err)
	}
	return &keyPair{cert: cert, key: key}, true, nil
}

func (p *keyPair) saveFiles(path string) error {
	if err := writeKey(path+".key", p.key); err != nil {
		return err
	}
	return writePEM(path+".crt", "CERTIFICATE", p.cert.Raw, 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode fs.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func readPEM(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("reading %s: no PEM block in it; remove it to have it made again", path)
	}
	return block.Bytes, nil
}
