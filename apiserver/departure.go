package apiserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server"
)

// departure is how this replica goes without anybody noticing.
//
// kube-apiserver keeps few connections to the Service and sends everything through them, so a replica that is no longer
// behind the Service keeps its clients for as long as its connections last. The delay between the signal to end and the
// closing of the port therefore has two halves. In the first everything is as ever, but for /readyz: endpoints and packet
// filters of all nodes learn that the replica goes. In the second every answer closes its connection (GOAWAY in HTTP/2,
// which lets requests in flight finish), so that the next request opens one to another replica, and the watches end one
// after the other.
type departure struct {
	delay time.Duration
	// leaving is true in the second half.
	leaving atomic.Bool
}

// follow waits for the end of ctx, and then leads through the delay, until running ends.
func (d *departure) follow(ctx, running context.Context, endWatches func(context.Context, time.Duration)) {
	<-ctx.Done()
	select {
	case <-running.Done():
		return
	case <-time.After(d.delay / 2):
	}
	d.leaving.Store(true)
	endWatches(running, d.delay/4)
}

// handlerChain is the usual chain with a plain word for those who ask for what there is not, and for those who should move on.
func (d *departure) handlerChain(api http.Handler, c *server.Config) http.Handler {
	return d.sendAway(server.DefaultBuildHandlerChain(refuse(clampTimeout(api)), c))
}

// sendAway closes connections while the replica is leaving.
func (d *departure) sendAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
