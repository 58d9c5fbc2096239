// Package ctrlmetrics has what the components that run a manager of controller-runtime have in common, beside package component, which does
// not import it: the sidecar is built without.
package ctrlmetrics

import (
	"net/http"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

// serveDeclared adds the metrics that were declared to those of managers.
var serveDeclared = sync.OnceFunc(func() { metrics.Registry.MustRegister(component.Collector()) })

// Server has a manager serve /metrics and /version at an address.
func Server(address string) server.Options {
	serveDeclared()
	return server.Options{BindAddress: address, ExtraHandlers: map[string]http.Handler{component.VersionPath: http.HandlerFunc(component.ServeVersion)}}
}
