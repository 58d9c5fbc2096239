package acme

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	legoacme "github.com/go-acme/lego/v5/acme"
	"github.com/go-acme/lego/v5/certcrypto"
	"github.com/go-acme/lego/v5/certificate"
	"github.com/go-acme/lego/v5/challenge"
	"github.com/go-acme/lego/v5/challenge/dns01"
	"github.com/go-acme/lego/v5/lego"
	"github.com/go-acme/lego/v5/registration"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"

	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) {
	// Pebble validates at once, and refuses no nonce at random.
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	kube.Main(m)
}

// authority is a pebble. What it and its clients know of DNS are the answers of a resolver.
type authority struct {
	directory string
	http      *http.Client
	// certificate is a file with that of its HTTPS server.
	certificate string
}

func startAuthority(t *testing.T, resolver netip.AddrPort) authority {
	t.Helper()
	logger := log.New(t.Output(), "pebble: ", 0)
	store := db.NewMemoryStore()
	issuer := ca.New(logger, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "default"}})
	validator := va.New(logger, 0, 0, true, resolver.String(), store)
	front := wfe.New(logger, store, validator, issuer, []string{"authority.example"}, true, false, 0, 0)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	dns01.SetDefaultClient(dns01.NewClient(&dns01.Options{RecursiveNameservers: []string{resolver.String()}}))

	file := filepath.Join(t.TempDir(), "authority.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return authority{server.URL + wfe.DirectoryPath, server.Client(), file}
}

// obtain gets a certificate for a name with lego, which proves by a provider that the name is its own.
func (a authority) obtain(t *testing.T, name string, provider challenge.Provider) error {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	user := &account{key: key}
	config := lego.NewConfig(user)
	config.CADirURL, config.HTTPClient = a.directory, a.http
	client, err := lego.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	// Servers of a test are not on port 53, so lego asks the resolver alone.
	if err := client.Challenge.SetDNS01Provider(provider, dns01.DisableAuthoritativeNssPropagationRequirement()); err != nil {
		t.Fatal(err)
	}
	if user.registration, err = client.Registration.Register(t.Context(), registration.RegisterOptions{TermsOfServiceAgreed: true}); err != nil {
		t.Fatal(err)
	}
	got, err := client.Certificate.Obtain(t.Context(), certificate.ObtainRequest{Domains: []string{name}, KeyType: certcrypto.EC256})
	if err != nil {
		return err
	}
	return isFor(got.Certificate, name)
}

// isFor is an error unless a certificate is for a name.
func isFor(text []byte, name string) error {
	block, _ := pem.Decode(text)
	if block == nil {
		return errors.New("there is no certificate")
	}
	got, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if err := got.VerifyHostname(name); err != nil {
		return fmt.Errorf("the certificate: %w", err)
	}
	return nil
}

// account is one of lego's.
type account struct {
	key          crypto.Signer
	registration *legoacme.ExtendedAccount
}

func (a *account) GetEmail() string                           { return "" }
func (a *account) GetRegistration() *legoacme.ExtendedAccount { return a.registration }
func (a *account) GetPrivateKey() crypto.Signer               { return a.key }
