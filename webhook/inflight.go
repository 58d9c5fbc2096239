package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/share"
	"github.com/lockstep-dns/lockstep/webhook/review"
)

// requestLimiter lets requests through to the handlers once the caches are full, so many of one address at a time, and twice as
// many in all, until the end. A request takes its place when its body is there: who sends half of a body holds nothing that others
// need.
//
// It answers 503 itself, as HTTP: kube-apiserver counts that as a failed call and goes by the failure policy, whereas a
// refusal inside a review would be final even for marks, which must never hold up anything.
type requestLimiter struct {
	synced, draining, closeConnections atomic.Bool
	// places are shared by addresses, so that enough is left for kube-apiserver.
	places *share.Pool
	bodies *bodyReader
}

func newRequestLimiter(inFlight int) *requestLimiter {
	return &requestLimiter{places: share.NewPool(2*int64(inFlight), int64(inFlight)), bodies: newBodyReader()}
}

// setSynced is a manager's runnable: it is started when the caches are full.
func (l *requestLimiter) setSynced(context.Context) error {
	l.synced.Store(true)
	return nil
}

// drain makes a context that ends the delay after the parent. In between the limiter lets requests through but says that it is not ready, so
// that nobody connects any more when the server goes away. kube-apiserver goes on using the connections that it has: in the second half
// of the delay each answer closes its own, for a review that is sent while the server closes the connection is lost.
func (l *requestLimiter) drain(parent context.Context, delay time.Duration) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	go func() {
		<-parent.Done()
		l.draining.Store(true)
		time.Sleep(delay / 2)
		l.closeConnections.Store(true)
		time.Sleep(delay / 2)
		cancel()
	}()
	return ctx
}

// checkReady is the readiness probe.
func (l *requestLimiter) checkReady(*http.Request) error {
	switch {
	case !l.synced.Load():
		return errors.New("the caches are not full yet")
	case l.draining.Load():
		return errors.New("about to end")
	}
	return nil
}

// limit lets a handler serve what the limiter lets through.
func (l *requestLimiter) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.closeConnections.Load() {
			w.Header().Set("Connection", "close")
		}
		if !l.synced.Load() {
			http.Error(w, "the caches are not full yet", http.StatusServiceUnavailable)
			return
		}
		body, release, err := l.bodies.read(w, r)
		if err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), err.code)
			return
		}
		defer release()
		host := hostOf(r)
		if l.places.Take(host, 1) != nil {
			http.Error(w, "too many reviews at once", http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.answerIn(host, next, r.WithContext(review.WithSender(r.Context(), host))).send(w)
	})
}

// answerIn has a handler answer a request in a place of a host, which is free again afterwards.
func (l *requestLimiter) answerIn(host string, next http.Handler, r *http.Request) *answer {
	defer l.places.Add(host, -1)
	a := &answer{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(a, r)
	return a
}

// answer keeps what a handler answers: the place is free before it is sent, for whoever asked may not read it.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) { a.code = code }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = a.body.WriteTo(w)
}
