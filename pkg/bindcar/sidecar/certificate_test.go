package sidecar

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/certs"
)

// TestRenewal: a certificate that is replaced is served from then on, without a restart; files that do not fit together, or
// are gone for a moment, change nothing.
func TestRenewal(t *testing.T) {
	dir := t.TempDir()
	o := &Options{TLSCertFile: filepath.Join(dir, "tls.crt"), TLSKeyFile: filepath.Join(dir, "tls.key")}
	issue := func() certs.State {
		t.Helper()
		authority, _, err := certs.DefaultPolicy.Advance(certs.State{}, time.Now(), false)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := authority.Issue(time.Now(), bindcar.CertificateName("dns", "dns-primary-0"))
		if err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string][]byte{o.TLSKeyFile: leaf.KeyPEM, o.TLSCertFile: leaf.CertPEM} {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return authority
	}
	first := issue()
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	config, err := o.watchCertificate(ctx, &group)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httperror.WriteJSON(w, http.StatusOK, bindcar.ZoneList{})
	}))
	web.TLS, web.Config.ErrorLog = config, log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(func() {
		web.Close()
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	ask := func(authority certs.State) error {
		client := bindcar.NewClient(bindcar.ClientOptions{Roots: func(context.Context) (*x509.CertPool, error) { return authority.Pool(), nil }})
		_, err := client.Zones(testContext(t), serverAt(web.URL))
		return err
	}
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	next := issue()
	eventually(t, func() bool { return ask(next) == nil })
	if err := os.WriteFile(o.TLSCertFile, []byte("half of"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ask(next); err != nil {
		t.Errorf("a broken file: %v", err)
	}
	if err := os.Remove(o.TLSCertFile); err != nil {
		t.Fatal(err)
	}
	if err := ask(next); err != nil {
		t.Errorf("a file that is gone: %v", err)
	}
	last := issue()
	eventually(t, func() bool { return ask(last) == nil })
}

// TestListenNeedsTLS: nobody is served in clear text over a network.
func TestListenNeedsTLS(t *testing.T) {
	cases := map[string]struct {
		listen, cert, key string
		ok                bool
	}{
		"with a certificate":     {":8080", "tls.crt", "tls.key", true},
		"without":                {":8080", "", "", false},
		"without, on loopback":   {"127.0.0.1:8080", "", "", true},
		"without, by a name":     {"localhost:8080", "", "", false},
		"a certificate, no key":  {":8080", "tls.crt", "", false},
		"a key, no certificate":  {"127.0.0.1:8080", "", "tls.key", false},
		"without, on an address": {"192.0.2.1:8080", "", "", false},
	}
	for name, c := range cases {
		o := NewOptions()
		o.AllowedServiceAccounts = []string{"a/b"}
		o.Listen, o.TLSCertFile, o.TLSKeyFile = []string{c.listen}, c.cert, c.key
		if err := o.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
