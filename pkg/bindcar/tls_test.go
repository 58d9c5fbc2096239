package bindcar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
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
	client := NewClient(ClientOptions{
		TokenFile: tokenFile(t), Roots: func(context.Context) (*x509.CertPool, error) { return state.Pool(), nil },
	})
	t.Cleanup(client.http.CloseIdleConnections)
	return client
}

// secured is a server with a certificate, and how often it was asked something.
type secured struct {
	Address
	asked chan string
}

func serveTLS(t *testing.T, authority certs.State, namespace, instance string) *secured {
	t.Helper()
	leaf, err := authority.Issue(time.Now(), CertificateName(namespace, instance))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	s := &secured{asked: make(chan string, 100)}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked <- r.Header.Get("Authorization")
		_, _ = w.Write([]byte("{}"))
	}))
	web.TLS, web.Config.ErrorLog = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}, log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	s.Address = serverAt(web.URL)
	return s
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
			s := serveTLS(t, ours, c.namespace, c.instance)
			client := trusting(t, c.trusted)
			_, err := client.Zones(testContext(t), s.Address)
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
