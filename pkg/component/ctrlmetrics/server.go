// Package ctrlmetrics has what the components that run a manager of controller-runtime have in common, beside package component, which does
// not import it: the sidecar is built without.
package ctrlmetrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/share"
)

// Bounds of what anybody who reaches the port can hold.
const (
	maxConnections = 64
	maxHeaderBytes = 16 << 10
	headerTimeout  = 5 * time.Second
	answerTimeout  = 30 * time.Second
)

// serveDeclared adds the metrics that were declared to those of managers.
var serveDeclared = sync.OnceFunc(func() { metrics.Registry.MustRegister(component.Collector()) })

// Off keeps a manager from serving metrics itself: its server bounds no connections.
func Off() server.Options { return server.Options{BindAddress: "0"} }

// Serve has a manager serve /metrics and /version at an address, at "0" nothing.
func Serve(ctx context.Context, mgr interface{ Add(manager.Runnable) error }, address string) error {
	if address == "0" {
		return nil
	}
	serveDeclared()
	port, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("opening the port of metrics: %w", err)
	}
	handler := http.NewServeMux()
	handler.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	handler.HandleFunc(component.VersionPath, component.ServeVersion)
	shutdown := time.Second
	return mgr.Add(&manager.Server{
		Name: "metrics", Listener: share.NewListener(port, maxConnections), ShutdownTimeout: &shutdown,
		Server: &http.Server{
			Handler: handler, MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: answerTimeout,
		},
	})
}
