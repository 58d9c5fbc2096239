package coredns

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Whoever names an endpoint learns that TLS fails there and what to check, and no name or authority of the certificate that is there.
func TestCertificatesAreNotRepeated(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	trusting := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	trusting.RootCAs.AddCert(server.Certificate()) // for example.com and 127.0.0.1
	elsewhere := trusting.Clone()
	elsewhere.ServerName = "etcd.internal"
	for name, o := range map[string]Options{
		"unknown authority": {Endpoints: []string{server.URL}},
		"another host name": {Endpoints: []string{server.URL}, TLS: elsewhere},
	} {
		b := New(o)
		err := b.explain(t.Context(), nil, status.Error(codes.Unavailable, "no connection"))
		if failure, ok := errors.AsType[*host.Error](err); !ok || failure.Reason != reasonCertificate {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, theirs := range []string{"x509", "example.com", "Acme", "127.0.0.1"} {
			if strings.Contains(err.Error(), theirs) {
				t.Errorf("%s: %q repeats %q", name, err, theirs)
			}
		}
		if !strings.Contains(err.Error(), "ca.crt") || !strings.Contains(err.Error(), "spec.coreDNS.etcd.endpoints") {
			t.Errorf("%s: %q does not say what to check", name, err)
		}
	}
	if err := failureOf(status.Error(codes.Unimplemented, "unknown service etcdserverpb.KV at vault.internal")); strings.Contains(err.Error(), "vault") || !strings.Contains(err.Error(), "Unimplemented") {
		t.Errorf("another server's words are repeated, or its code is not: %v", err)
	}
}
