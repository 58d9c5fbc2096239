package fault

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// clusterCA is where the dev cluster has the certificate and the key of its CA.
const clusterCA = "/var/lib/lockstep-cluster/pki/ca"

// proxy stands between a component and kube-apiserver. It passes requests on with the component's own credentials, holds back the events
// of watches, and counts writes.
type proxy struct {
	addr   netip.AddrPort
	server *http.Server

	// holds reports whether the watches of a resource are held back until released is closed. nil holds none.
	holds    func(resource string) bool
	released chan struct{}
	// wrote is called with the number of each write that has taken effect, before the component hears of it.
	wrote func(number int)

	mutex  sync.Mutex
	held   int
	writes int
	// expired are the paths of the watches that end with a gap: the next one that goes on gets 410 (Expired). It is nil until then.
	expired map[string]bool
}

// startProxy starts a proxy at a host's address before the server at a URL, with a certificate for the address that clients believe to
// connect to.
func startProxy(server *url.URL, trusted *x509.CertPool, identity tls.Certificate) (*proxy, error) {
	p := &proxy{released: make(chan struct{})}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	pass := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:      transport,
		FlushInterval:  -1, // events go on at once
		ModifyResponse: p.takeResponse,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(server.Hostname(), "0"))
	if err != nil {
		return nil, err
	}
	p.addr = listener.Addr().(*net.TCPAddr).AddrPort()
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.isExpired(r) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusGone)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`)
				return
			}
			pass.ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS12}, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() {
		_ = p.server.ServeTLS(listener, "", "")
		transport.CloseIdleConnections()
	}()
	return p, nil
}

// close ends the proxy: first what is no watch, then all.
func (p *proxy) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = p.server.Shutdown(ctx)
	_ = p.server.Close()
}

func isWatch(r *http.Request) bool {
	q := r.URL.Query()
	return q.Get("watch") == "true" || q.Get("watch") == "1"
}

// isWrite reports whether a request changes something that matters. Leases and reviews come all the time.
func isWrite(r *http.Request) bool {
	switch resource := path.Base(r.URL.Path); {
	case r.Method == http.MethodGet, r.Method == http.MethodHead, resource == "events", strings.HasSuffix(resource, "reviews"):
		return false
	}
	return !strings.Contains(r.URL.Path, "/leases")
}

// takeResponse holds back the events of a watch, and counts writes.
func (p *proxy) takeResponse(reply *http.Response) error {
	r := reply.Request
	switch {
	case reply.StatusCode >= http.StatusMultipleChoices:
	case isWatch(r) && p.holds != nil && p.holds(path.Base(r.URL.Path)):
		p.mutex.Lock()
		p.held++
		p.mutex.Unlock()
		reply.Body = &heldBody{ReadCloser: reply.Body, proxy: p, path: r.URL.Path, ctx: r.Context()}
	case isWrite(r) && p.wrote != nil:
		p.mutex.Lock()
		p.writes++
		number := p.writes
		p.mutex.Unlock()
		p.wrote(number)
	}
	return nil
}

func (p *proxy) countHeld() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.held
}

// release ends holding back. With a gap, the watches end without the events, and the component has to list again.
func (p *proxy) release(withGap bool) {
	if withGap {
		p.mutex.Lock()
		p.expired = map[string]bool{}
		p.mutex.Unlock()
	}
	close(p.released)
}

// endsWithGap reports whether the events of a watch are not to be passed on.
func (p *proxy) endsWithGap(path string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.expired == nil {
		return false
	}
	p.expired[path] = true
	return true
}

// isExpired reports, once for each path, whether a watch goes on from where one ended with a gap.
func (p *proxy) isExpired(r *http.Request) bool {
	if q := r.URL.Query(); !isWatch(r) || q.Get("resourceVersion") == "" || q.Get("sendInitialEvents") != "" {
		return false
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer delete(p.expired, r.URL.Path)
	return p.expired[r.URL.Path]
}

// heldBody is the body of a watch that is held back.
type heldBody struct {
	io.ReadCloser

	proxy *proxy
	path  string
	ctx   context.Context //nolint:containedctx // that of its request
}

// Read implements io.Reader.
func (b *heldBody) Read(data []byte) (int, error) {
	select {
	case <-b.proxy.released:
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	if b.proxy.endsWithGap(b.path) {
		return 0, io.EOF
	}
	return b.ReadCloser.Read(data)
}

// newIdentity returns a certificate for an address by the CA whose certificate and key are in files.
func newIdentity(address netip.Addr, ca string) (tls.Certificate, error) {
	issuer, err := tls.LoadX509KeyPair(ca+".crt", ca+".key")
	if errors.Is(err, os.ErrNotExist) {
		return tls.Certificate{}, errNotNow // a cluster whose CA is elsewhere
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{address.AsSlice()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// What the proxy holds back, lets pass, counts and ends with a gap.
func TestProxy(t *testing.T) {
	kube.WithoutCluster(t)
	events := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s by %s", r.Method, r.Header.Get("Authorization"))
		if isWatch(r) {
			w.(http.Flusher).Flush()
			select {
			case e := <-events:
				_, _ = io.WriteString(w, e)
			case <-r.Context().Done():
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	p, err := startProxy(target, trusted, server.TLS.Certificates[0])
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.holds = func(resource string) bool { return resource == "pods" }
	var writes []int
	p.wrote = func(number int) { writes = append(writes, number) }
	client := server.Client()
	call := func(method, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+p.addr.String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer own")
		reply, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reply.Body.Close() })
		return reply
	}
	read := func(reply *http.Response) string {
		t.Helper()
		data, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}

	if reply := call("GET", "/api/v1/pods"); reply.ProtoMajor != 2 || read(reply) != "GET by Bearer own" {
		t.Errorf("a list: %v", reply)
	}
	for _, path := range []string{"/api/v1/namespaces/a/pods", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", "/api/v1/namespaces/a/pods/p"} {
		_ = read(call("PUT", path))
	}
	if fmt.Sprint(writes) != "[1 2]" {
		t.Errorf("writes %v, want the two that are not of a lease", writes)
	}
	events <- ", an event"
	if got := read(call("GET", "/api/v1/secrets?watch=true")); got != "GET by Bearer own, an event" {
		t.Errorf("a watch that is not held back: %q", got)
	}
	held := call("GET", "/api/v1/pods?watch=true&resourceVersion=5")
	if p.countHeld() != 1 {
		t.Errorf("%d watches are held back", p.countHeld())
	}
	p.release(true)
	if got := read(held); got != "" {
		t.Errorf("a watch with a gap has %q", got)
	}
	if reply := call("GET", "/api/v1/pods?watch=true&resourceVersion=5"); reply.StatusCode != http.StatusGone {
		t.Errorf("going on behind a gap: %s", reply.Status)
	}
	events <- ", an event"
	if reply := call("GET", "/api/v1/pods?watch=true&resourceVersion=9"); reply.StatusCode != http.StatusOK {
		t.Errorf("the next watch: %s", reply.Status)
	}
}
