package apiserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// While a replica drains, every request is answered and none of its clients stays on its connection.
func TestDrainingReplicaSendsItsClientsAway(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			d := &gracefulShutdown{}
			var opened atomic.Int32
			s := httptest.NewUnstartedServer(d.drainConnections(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, r.Proto)
			})))
			s.EnableHTTP2 = http2
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			s.StartTLS()
			defer s.Close()
			ask := func() {
				t.Helper()
				reply, err := s.Client().Get(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = reply.Body.Close() }()
				if body, err := io.ReadAll(reply.Body); err != nil || string(body) != name {
					t.Fatalf("%s %v", body, err)
				}
			}
			for range 10 {
				ask()
			}
			if n := opened.Load(); n != 1 {
				t.Fatalf("%d connections for ten requests before, want 1", n)
			}
			ended := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			d.waitAndEnd(ctx, t.Context(), func(context.Context, time.Duration) { close(ended) })
			<-ended
			for deadline := time.Now().Add(time.Minute); opened.Load() < 4; ask() {
				if time.Now().After(deadline) {
					t.Fatalf("%d connections: clients are not sent away", opened.Load())
				}
			}
		})
	}
}

// A server that fails to start does not drain.
func TestShutdownEndsWithTheProcess(t *testing.T) {
	d := &gracefulShutdown{delay: time.Hour}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d.waitAndEnd(ended, ended, func(context.Context, time.Duration) { t.Error("watches were ended") })
	if d.draining.Load() {
		t.Error("it is draining")
	}
}
