package webhook

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// maxBodySize caps a review's body in bytes. A review holds the new and the old object, each at most 1.5 MiB in etcd; the
// largest of our kinds, a DNSEndpoint, reaches that only with many thousands of names.
const maxBodySize = 4 << 20

// maxBodyTime is how long a body may take to come in. kube-apiserver waits no longer for the answer; somebody else in the
// cluster who sends half of a review must not keep its place.
const maxBodyTime = 10 * time.Second

// requestLimiter lets requests through to the handlers once the caches are full, so many at a time, until the end.
//
// It answers 503 itself, as HTTP: kube-apiserver counts that as a failed call and goes by the failure policy, whereas a
// refusal inside a review would be final even for the stamp, which must never hold up anything.
type requestLimiter struct {
	synced, draining, closeConnections atomic.Bool
	slots                              chan struct{}
	bodyTimeout                        time.Duration
}

func newRequestLimiter(inFlight int) *requestLimiter {
	return &requestLimiter{slots: make(chan struct{}, inFlight), bodyTimeout: maxBodyTime}
}

// setSynced is a manager's runnable: it is started when the caches are full.
func (g *requestLimiter) setSynced(context.Context) error {
	g.synced.Store(true)
	return nil
}

// drain returns a context that ends the delay after the parent. In between the gate lets requests through but says that it
// is not ready, so that nobody connects any more when the server goes away. kube-apiserver goes on using the connections
// that it has: in the second half of the delay each answer closes its own, for a review that is sent while the server
// closes the connection is lost.
func (g *requestLimiter) drain(parent context.Context, delay time.Duration) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	go func() {
		<-parent.Done()
		g.draining.Store(true)
		time.Sleep(delay / 2)
		g.closeConnections.Store(true)
		time.Sleep(delay / 2)
		cancel()
	}()
	return ctx
}

// checkReady is the readiness probe.
func (g *requestLimiter) checkReady(*http.Request) error {
	switch {
	case !g.synced.Load():
		return errors.New("the caches are not full yet")
	case g.draining.Load():
		return errors.New("about to end")
	}
	return nil
}

// limit guards a handler with the gate.
func (g *requestLimiter) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.closeConnections.Load() {
			w.Header().Set("Connection", "close")
		}
		if !g.synced.Load() {
			http.Error(w, "the caches are not full yet", http.StatusServiceUnavailable)
			return
		}
		select {
		case g.slots <- struct{}{}:
			defer func() { <-g.slots }()
		default:
			http.Error(w, "too many reviews at once", http.StatusServiceUnavailable)
			return
		}
		// The server sets another deadline before the next request of the connection.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			http.Error(w, "the connection has no deadline", http.StatusInternalServerError)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBodySize)
		next.ServeHTTP(w, r)
	})
}
