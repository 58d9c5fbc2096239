package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	for size, want := range map[int]bool{maxBodySize: true, maxBodySize + 1: false} {
		h := g.limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) == want {
				t.Errorf("%d bytes: %v", size, err)
			}
		}))
		ask(t, h, make([]byte, size))
	}
}

// A body that never ends gives its place back, and the next review is answered.
func TestGateEndsWaitingForBodies(t *testing.T) {
	g := newRequestLimiter(1)
	g.synced.Store(true)
	g.bodyTimeout = 10 * time.Millisecond
	read := make(chan error, 1)
	server := httptest.NewServer(g.limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})))
	defer server.Close()
	body, never := io.Pipe()
	defer never.Close()
	go func() {
		if answer, err := http.Post(server.URL, "application/json", body); err == nil {
			_ = answer.Body.Close()
		}
	}()
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading half a body: %v", err)
	}
	g.slots <- struct{}{} // There is a place again.
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
		"everything":                {func(o *Options) { *o = Options{Namespace: "A_B", Service: "", Port: 70000, ShutdownDelay: -1} }, 6},
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
