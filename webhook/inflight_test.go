package webhook

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dns/lockstep/webhook/review"
)

func ask(t *testing.T, h http.Handler, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body)))
	return w
}

func TestGateIsShutUntilCachesAreFull(t *testing.T) {
	g := newRequestLimiter(1)
	h := g.limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if code := ask(t, h, nil).Code; code != http.StatusServiceUnavailable || g.checkReady(nil) == nil {
		t.Errorf("cold: %d, ready = %v", code, g.checkReady(nil) == nil)
	}
	if err := g.setSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := ask(t, h, nil).Code; code != http.StatusOK || g.checkReady(nil) != nil {
		t.Errorf("full: %d, ready = %v", code, g.checkReady(nil) == nil)
	}
}

func TestGateLimitsReviewsAtOnce(t *testing.T) {
	g := newRequestLimiter(1)
	g.synced.Store(true)
	entered, leave := make(chan struct{}), make(chan struct{})
	h := g.limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(t, h, nil)
	}()
	<-entered
	if code := ask(t, h, nil).Code; code != http.StatusServiceUnavailable {
		t.Errorf("a second review at once: %d", code)
	}
	close(leave)
	<-done
}

func TestGateCapsBodies(t *testing.T) {
	g := newRequestLimiter(1)
	g.synced.Store(true)
	for size, want := range map[int]int{maxBodySize: http.StatusOK, maxBodySize + 1: http.StatusRequestEntityTooLarge} {
		h := g.limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err != nil || len(body) != size {
				t.Errorf("%d of %d bytes: %v", len(body), size, err)
			}
		}))
		if code := ask(t, h, make([]byte, size)).Code; code != want {
			t.Errorf("%d bytes: %d, want %d", size, code, want)
		}
	}
	if g.bodies.bytes.Used() != 0 {
		t.Errorf("%d bytes are still taken", g.bodies.bytes.Used())
	}
}

// A body that never ends takes no place, and its connection ends.
func TestGateEndsWaitingForBodies(t *testing.T) {
	g := newRequestLimiter(1)
	g.synced.Store(true)
	g.bodies.timeout = 10 * time.Millisecond
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	g.limit(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if left := time.Until(w.deadline); w.deadline.IsZero() || left > g.bodies.timeout {
		t.Fatalf("a body may take until %s", w.deadline)
	}
	server := httptest.NewServer(g.limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("half a body was handled") })))
	defer server.Close()
	body, never := io.Pipe()
	defer never.Close()
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Post(server.URL, "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestTimeout || !answer.Close {
		t.Errorf("answered %d, connection closed: %t", answer.StatusCode, answer.Close)
	}
	if g.places.Take("", 1) != nil || g.places.Take("another", 1) != nil {
		t.Error("half a body holds a place")
	}
}

// deadlineRecorder is a response of which the deadline of the request is of interest.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (r *deadlineRecorder) SetReadDeadline(deadline time.Time) error {
	r.deadline = deadline
	return nil
}

// A request whose body is still to come holds no place.
func TestGateReadsBodiesFirst(t *testing.T) {
	g := newRequestLimiter(1)
	g.synced.Store(true)
	h := g.limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	body, rest := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", body))
	}()
	if _, err := rest.Write([]byte("{")); err != nil { // It returns once the byte has been read.
		t.Fatal(err)
	}
	if code := ask(t, h, nil).Code; code != http.StatusOK {
		t.Errorf("a review beside half a body: %d", code)
	}
	_ = rest.Close()
	<-done
}

// Reviews of one address, however long they take, leave places for those of another.
func TestGateLimitsReviewsOfAnAddress(t *testing.T) {
	g := newRequestLimiter(2)
	g.synced.Store(true)
	entered, leave := make(chan struct{}, 4), make(chan struct{})
	h := g.limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := review.SenderOf(r.Context()); got != hostOf(r) {
			t.Errorf("a review from %s counts as one of %q", r.RemoteAddr, got)
		}
		entered <- struct{}{}
		<-leave
	}))
	codes := make(chan int)
	from := func(address string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		codes <- w.Code
	}
	for range 2 {
		go from("192.0.2.66:1")
		<-entered
	}
	requireRefused := func(address, problem string) {
		t.Helper()
		go from(address)
		select {
		case code := <-codes:
			if code != http.StatusServiceUnavailable {
				t.Errorf("%s: answered %d", problem, code)
			}
		case <-entered:
			t.Fatal(problem)
		}
	}
	requireRefused("192.0.2.66:2", "an address has more than its places")
	for range 2 {
		go from("192.0.2.1:1")
		<-entered
	}
	requireRefused("192.0.2.7:1", "all together have more than the places")
	close(leave)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
	}
	if g.places.Used() != 0 {
		t.Errorf("%d places are still taken", g.places.Used())
	}
}

// One address cannot have all the memory for bodies, and what it has comes back.
func TestMemoryOfBodiesIsShared(t *testing.T) {
	b := newBodyReader()
	if b.bytes.Take("attacker", maxBytesPerHost) != nil || b.bytes.Take("attacker", 1) == nil {
		t.Error("an address is not limited to its share")
	}
	if b.bytes.Take("kube-apiserver", maxBodySize) != nil {
		t.Error("another address has no share")
	}
	if b.bytes.Take("another", maxBytesPerHost) == nil {
		t.Error("all together are not limited")
	}
	b.bytes.Add("attacker", -maxBytesPerHost)
	if b.bytes.Take("attacker", maxBytesPerHost) != nil {
		t.Error("memory that was given back is not there")
	}
}

// A request that waits for its body pays for its headers, and for what it takes itself: thousands of them without a body take memory, too.
func TestWaitingRequestsArePaidFor(t *testing.T) {
	b := newBodyReader()
	r := httptest.NewRequest(http.MethodPost, "/", readFunc(func() {
		if used := b.bytes.Used(); used < requestSize+50_000 {
			t.Errorf("%d bytes are charged for a request with 50,000 bytes of headers", used)
		}
	}))
	r.Header.Set("X-Large", strings.Repeat("x", 50_000))
	_, release, failed := b.read(httptest.NewRecorder(), r)
	if failed != nil {
		t.Fatal(failed)
	}
	if release(); b.bytes.Used() != 0 {
		t.Errorf("%d bytes are still taken", b.bytes.Used())
	}
	b.bytes.Add(hostOf(r), maxBytesPerHost)
	if _, _, failed := b.read(httptest.NewRecorder(), r); failed == nil || failed.code != http.StatusServiceUnavailable {
		t.Errorf("a request beyond the share of its address: %v", failed)
	}
}

// readFunc is a body without a byte.
type readFunc func()

func (read readFunc) Read([]byte) (int, error) {
	read()
	return 0, io.EOF
}

// An answer that nobody reads holds no place.
func TestUnreadAnswersHoldNoPlace(t *testing.T) {
	g := newRequestLimiter(1)
	g.synced.Store(true)
	entered := make(chan struct{}, 1)
	server := httptest.NewServer(g.limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			entered <- struct{}{}
			_, _ = w.Write(make([]byte, 32<<20)) // More than sockets take.
		}
	})))
	defer server.CloseClientConnections()
	conn := dial(t, server.Listener.Addr().String())
	if _, err := fmt.Fprint(conn, "POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		other := dial(t, server.Listener.Addr().String())
		defer other.Close()
		if _, err := fmt.Fprint(other, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return false, err
		}
		answer, err := http.ReadResponse(bufio.NewReader(other), nil)
		if err != nil {
			return false, err
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK, ctx.Err()
	}); err != nil {
		t.Errorf("another review beside an answer that nobody reads: %v", err)
	}
}

// dial opens a connection that sends nothing.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestGateDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRequestLimiter(1)
		g.synced.Store(true)
		parent, stop := context.WithCancel(t.Context())
		ctx := g.drain(parent, 4*time.Second)
		h := g.limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		connection := func() string {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", review.Path, nil))
			return w.Header().Get("Connection")
		}
		stop()
		for _, want := range []string{"", "close"} {
			time.Sleep(time.Second)
			if g.checkReady(nil) == nil || ctx.Err() != nil {
				t.Errorf("while draining: ready = %v, ended = %v", g.checkReady(nil) == nil, ctx.Err() != nil)
			}
			if got := connection(); got != want {
				t.Errorf("Connection: %q, want %q", got, want)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("not ended after the delay")
		}
	})
}

func TestOptions(t *testing.T) {
	tests := map[string]struct {
		change func(*Options)
		want   int // problems
	}{
		"defaults":                  {func(*Options) {}, 0},
		"everything":                {func(o *Options) { *o = Options{Namespace: "A_B", Port: 70000, ShutdownDelay: -1} }, 5},
		"a certificate and its key": {func(o *Options) { o.CertFile, o.KeyFile = "/tls/tls.crt", "/tls/tls.key" }, 0},
		"a certificate alone":       {func(o *Options) { o.CertFile = "/tls/tls.crt" }, 1},
		"in two folders":            {func(o *Options) { o.CertFile, o.KeyFile = "/a/tls.crt", "/b/tls.key" }, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			tc.change(o)
			got := 0
			if joined, ok := o.Validate().(interface{ Unwrap() []error }); ok {
				got = len(joined.Unwrap())
			}
			if got != tc.want {
				t.Errorf("%d problems, want %d: %v", got, tc.want, o.Validate())
			}
		})
	}
}

// The configurations in manifests spare the same users (review/conditions_test.go).
func TestTrustedUsersAreOurAccounts(t *testing.T) {
	want := map[string]bool{
		"system:serviceaccount:lockstep-system:lockstep-controller": true,
		"system:serviceaccount:lockstep-system:lockstep-uninstall":  true,
	}
	if diff := cmp.Diff(want, NewOptions().trustedUsers()); diff != "" {
		t.Errorf("trusted users (-want +got):\n%s", diff)
	}
}
