package sidecar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// watchCertificates makes a configuration that requires a certificate of every caller, with what the files have at any time. Files that
// cannot be read, or do not fit together because they are just being replaced, change nothing.
func (o *Options) watchCertificates(ctx context.Context, group *errgroup.Group) (*tls.Config, error) {
	clients, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", o.TLSCertFile, o.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	config := &tls.Config{
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  x509.NewCertPool(), // never those of the system
		MinVersion: tls.VersionTLS13,
		// Each connection is verified with the authorities of its moment.
		SessionTicketsDisabled: true,
	}
	current := dynamiccertificates.NewDynamicServingCertificateController(config, clients, serving, nil, nil)
	if err := current.RunOnce(); err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --client-ca-file: %w", err)
	}
	clients.AddListener(current)
	serving.AddListener(current)
	group.Go(func() error { clients.Run(ctx, 1); return nil })
	group.Go(func() error { serving.Run(ctx, 1); return nil })
	group.Go(func() error { current.Run(1, ctx.Done()); return nil })
	config = config.Clone()
	config.GetConfigForClient = current.GetConfigForClient
	return config, nil
}

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
