package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// Whoever holds connections open without a word, or sends headers without end, keeps nobody out, and takes little memory.
func TestConnectionsAreBounded(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // It brings a certificate.
	defer certified.Close()
	o := NewOptions()
	o.Port = 0
	listener, err := o.listen(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", port)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}}
	ask := func(header string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Large", header)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if code := ask(strings.Repeat("x", 4*maxHeaderBytes)); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("large headers: %d", code)
	}

	oldest := dial(t, address)
	for range maxConnections {
		dial(t, address)
	}
	_ = oldest.SetReadDeadline(time.Now().Add(headerTimeout / 2))
	if _, err := oldest.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest of too many connections is open: %v", err)
	}
	client.CloseIdleConnections()
	if code := ask(""); code != http.StatusOK {
		t.Errorf("beside too many connections: %d", code)
	}
}
