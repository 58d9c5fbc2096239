// Package metricsserver has how the controller, the fleet manager and the webhook serve /metrics.
package metricsserver

import (
	"crypto/tls"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options returns what a controller-runtime manager serves /metrics with at an address; "0" for not at all. It speaks HTTPS with
// a certificate that it signs itself, and answers callers whose token kube-apiserver knows (TokenReview) and who may get the
// path /metrics (SubjectAccessReview), as the API server does.
func Options(address string) server.Options {
	return server.Options{
		BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS13, []string{"http/1.1"} }},
	}
}
