package sidecar

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// newHealthServer returns a server whose connections last for one request.
func newHealthServer(ctx context.Context, handler http.Handler) *http.Server {
	server := newHTTPServer(ctx, handler)
	server.ReadTimeout, server.WriteTimeout, server.MaxHeaderBytes = handshakeTimeout, handshakeTimeout, 4<<10
	server.SetKeepAlivesEnabled(false)
	return server
}

func newHTTPServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

func serveHTTP(ctx context.Context, listener net.Listener, server *http.Server) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	})
	err := server.Serve(listener)
	if !stop() && errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	return err
}
