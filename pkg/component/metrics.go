package component

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
)

// shared has the metrics that several components have.
var shared = metrics.NewKubeRegistry()

// declared are the metrics that shared gets when the flags are known: --disabled-metrics applies to what is registered after it.
var declared []metrics.Registerable

// DeclareMetrics adds metrics with a stability level to /metrics of every component. It is for package initialization.
func DeclareMetrics(all ...metrics.Registerable) { declared = append(declared, all...) }

// RegisterMetrics creates the metrics that were declared. Before it they count nothing.
var RegisterMetrics = sync.OnceValue(func() error {
	for _, metric := range declared {
		if err := shared.Register(metric); err != nil {
			return fmt.Errorf("registering the metric %s: %w", metric.FQName(), err)
		}
	}
	return nil
})

// Register adds a metric with a stability level to those that were declared, once the flags are known.
func Register(metric metrics.Registerable) error { return shared.Register(metric) }

// Collector returns the metrics that were declared, for the registry that a process serves.
func Collector() prometheus.Collector { return shared.Registerer().(prometheus.Collector) }
