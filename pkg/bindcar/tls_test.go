package bindcar

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/certs"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

func newAuthority(t *testing.T) certs.State {
	t.Helper()
	state, _, err := certs.DefaultPolicy.Advance(certs.State{}, time.Now(), false)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func trusting(t *testing.T, state certs.State) *Client {
	t.Helper()
	client := NewClient(ClientOptions{Roots: func(context.Context) (*x509.CertPool, error) { return state.Pool(), nil }})
	t.Cleanup(client.http.CloseIdleConnections)
	return client
}

// secured is a server with a certificate in files, and how often it was asked something.
type secured struct {
	Server
	cert, key string
	asked     chan string
}

func serveTLS(t *testing.T, pace time.Duration) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), asked: make(chan string, 100)}
	s.issue(t, newAuthority(t), "dns", "dns-primary-0")
	certificate, err := loadCertificate(s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate.pace = pace
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	s.Server = serverAt("https://" + listener.Addr().String())
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked <- r.Header.Get("Authorization")
		respond(w, http.StatusOK, ZoneList{})
	})}
	go func() { _ = server.Serve(certificate.listen(listener)) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func (s *secured) issue(t *testing.T, authority certs.State, namespace, instance string) {
	t.Helper()
	leaf, err := authority.Issue(time.Now(), CertificateName(namespace, instance))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.key, leaf.KeyPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.cert, leaf.CertPEM, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVerification: no token is sent to anybody but the instance that is meant.
func TestVerification(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	cases := map[string]struct {
		trusted             certs.State
		namespace, instance string
		ok                  bool
	}{
		"as it should be":         {ours, "dns", "dns-primary-0", true},
		"another authority":       {others, "dns", "dns-primary-0", false},
		"another instance's":      {ours, "dns", "dns-primary-1", false},
		"of another namespace":    {ours, "team", "dns-primary-0", false},
		"part of the name":        {ours, "dns", "primary-0", false},
		"a name below the name's": {ours, "dns", "x.dns-primary-0", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, 0)
			s.issue(t, ours, c.namespace, c.instance)
			client := trusting(t, c.trusted)
			client.token = &tokenFile{path: "unused", token: goodToken, since: time.Now()}
			_, err := client.Zones(testContext(t), s.Server)
			if c.ok != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if c.ok {
				if token := <-s.asked; token != "Bearer "+goodToken {
					t.Errorf("asked with %q", token)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Reason != status.BindcarUnreachable || !strings.Contains(e.Details, "certificate") {
				t.Errorf("got %#v", err)
			}
			if len(s.asked) != 0 {
				t.Error("the token was sent")
			}
		})
	}
}

// TestNoPlainText: a server without TLS gets nothing from a client that wants it.
func TestNoPlainText(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	if _, err := trusting(t, newAuthority(t)).Zones(testContext(t), serverAt("http://"+listener.Addr().String())); err == nil || len(asked) > 0 {
		t.Errorf("got %v", err)
	}
}

// TestRenewal: a certificate that is replaced is served from then on, without a restart; files that do not fit together, or
// are gone for a moment, change nothing.
func TestRenewal(t *testing.T) {
	s := serveTLS(t, 0)
	next := newAuthority(t)
	s.issue(t, next, "dns", "dns-primary-0")
	if _, err := trusting(t, next).Zones(testContext(t), s.Server); err != nil {
		t.Errorf("the new certificate is not served: %v", err)
	}
	if err := os.WriteFile(s.cert, []byte("half of"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trusting(t, next).Zones(testContext(t), s.Server); err != nil {
		t.Errorf("a broken file: %v", err)
	}
	if err := os.Remove(s.cert); err != nil {
		t.Fatal(err)
	}
	if _, err := trusting(t, next).Zones(testContext(t), s.Server); err != nil {
		t.Errorf("a file that is gone: %v", err)
	}
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
