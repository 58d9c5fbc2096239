package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are an authority, and a server's and a client's certificate of it, in files.
type Certificates struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey string
	// Client is a client's configuration.
	Client *tls.Config
}

// NewCertificates makes certificates for 127.0.0.1, where the servers listen.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	key := newKey(t)
	ca := sign(t, authority, authority, key, key)
	c := &Certificates{
		CA: filepath.Join(dir, "ca.crt"), ServerCert: filepath.Join(dir, "server.crt"), ServerKey: filepath.Join(dir, "server.key"),
		ClientCert: filepath.Join(dir, "client.crt"), ClientKey: filepath.Join(dir, "client.key"),
	}
	write(t, c.CA, "CERTIFICATE", ca)
	issue := func(name, cert, keyFile string) tls.Certificate {
		leaf := newKey(t)
		der := sign(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, authority, leaf, key)
		write(t, cert, "CERTIFICATE", der)
		raw, err := x509.MarshalPKCS8PrivateKey(leaf)
		if err != nil {
			t.Fatal(err)
		}
		write(t, keyFile, "PRIVATE KEY", raw)
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: leaf}
	}
	issue("etcd", c.ServerCert, c.ServerKey)
	client := issue("", c.ClientCert, c.ClientKey)
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	c.Client = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}, MinVersion: tls.VersionTLS12}
	return c
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
