// Package mtls gives tests certificates of an authority of their own, as the controller issues them.
package mtls

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
)

// NewAuthority returns a new certificate authority.
func NewAuthority(t testing.TB) certs.State {
	t.Helper()
	state, _, err := certs.DefaultPolicy.Advance(certs.State{}, time.Now(), false)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Instance returns the certificate of an instance's sidecars, as the data of its Secret.
func Instance(t testing.TB, authority certs.State, namespace, instance string) map[string][]byte {
	t.Helper()
	return issue(t, authority, certs.Subject{DNSNames: []string{bindcar.CertificateName(namespace, instance)}})
}

// Caller returns what a client with an identity connects with.
func Caller(t testing.TB, authority certs.State, identity string) func(context.Context) (*tls.Config, error) {
	t.Helper()
	data := issue(t, authority, certs.Subject{Identity: identity})
	return func(context.Context) (*tls.Config, error) { return certs.ClientConfig(data) }
}

// WithCertificate returns what a client connects with that trusts what another one trusts, and has the certificate of a
// Secret's data, or none.
func WithCertificate(other func(context.Context) (*tls.Config, error), data map[string][]byte) func(context.Context) (*tls.Config, error) {
	return func(ctx context.Context) (*tls.Config, error) {
		trust, err := other(ctx)
		if err != nil {
			return nil, err
		}
		config := &tls.Config{RootCAs: trust.RootCAs, MinVersion: tls.VersionTLS13}
		if data != nil {
			own, err := certs.ClientConfig(data)
			if err != nil {
				return nil, err
			}
			config.GetClientCertificate = own.GetClientCertificate
		}
		return config, nil
	}
}

// Client returns a client of sidecars with an identity.
func Client(t testing.TB, authority certs.State, identity string) *bindcar.Client {
	t.Helper()
	return bindcar.NewClient(bindcar.ClientOptions{TLS: Caller(t, authority, identity)})
}

func issue(t testing.TB, authority certs.State, subject certs.Subject) map[string][]byte {
	t.Helper()
	data, err := authority.Issue(time.Now(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// WriteFiles writes the data of a Secret to a directory, as the kubelet does.
func WriteFiles(t testing.TB, dir string, data map[string][]byte) {
	t.Helper()
	for file, content := range data {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
