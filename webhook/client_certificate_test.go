package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
)

// With an authority of clients, nobody is answered but those who show its certificate with the right name.
func TestClientCertificates(t *testing.T) {
	authority, other := newClientAuthority(t), newClientAuthority(t)
	o := NewOptions()
	o.ClientCAFile, o.ClientNames = filepath.Join(t.TempDir(), "ca.crt"), []string{"kube-apiserver"}
	if err := os.WriteFile(o.ClientCAFile, authority.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	config, _, err := o.serverConfig(certs.NewFollower(nil, certs.SecretKey("x")))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	config.GetCertificate = nil // The test server brings its own.
	server.TLS = config
	server.StartTLS()
	defer server.Close()
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		want         bool
	}{
		"kube-apiserver":       {[]tls.Certificate{authority.issue(t, "kube-apiserver")}, true},
		"nobody":               {nil, false},
		"another name":         {[]tls.Certificate{authority.issue(t, "somebody")}, false},
		"of another authority": {[]tls.Certificate{other.issue(t, "kube-apiserver")}, false},
	} {
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: c.certificates}}}
		answer, err := client.Post(server.URL, "application/json", bytes.NewReader(nil))
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// clientAuthority issues client certificates.
type clientAuthority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newClientAuthority(t *testing.T) clientAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "clients"}, key)
	if err != nil {
		t.Fatal(err)
	}
	return clientAuthority{key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})}
}

func (a clientAuthority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
