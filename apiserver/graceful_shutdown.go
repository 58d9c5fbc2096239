package apiserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server"
)

// gracefulShutdown ends this replica without its clients noticing.
//
// kube-apiserver keeps few connections to the Service and sends everything through them, so a replica that is no longer
// behind the Service keeps its clients for as long as its connections last. The delay between the signal to end and the
// closing of the port therefore has two halves. In the first everything but /readyz works as before: endpoints and packet
// filters of all nodes learn that the replica ends. In the second every answer closes its connection (GOAWAY in HTTP/2,
// which lets requests in flight finish), so that the next request opens one to another replica, and the watches end one
// after the other.
type gracefulShutdown struct {
	delay time.Duration
	// draining is true in the second half.
	draining atomic.Bool
}

// waitAndEnd waits for the end of ctx, and then ends watches and connections within the delay, unless running ends before.
func (s *gracefulShutdown) waitAndEnd(ctx, running context.Context, endWatches func(context.Context, time.Duration)) {
	<-ctx.Done()
	select {
	case <-running.Done():
		return
	case <-time.After(s.delay / 2):
	}
	s.draining.Store(true)
	endWatches(running, s.delay/4)
}

// handlerChain extends the usual chain: it also explains what is not supported, and drains connections.
func (s *gracefulShutdown) handlerChain(api http.Handler, c *server.Config) http.Handler {
	return s.drainConnections(server.DefaultBuildHandlerChain(refuseUnsupported(clampTimeout(api)), c))
}

// drainConnections closes connections while the replica drains.
func (s *gracefulShutdown) drainConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
