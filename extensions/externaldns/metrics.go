package externaldns

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics"
)

// serverMetrics are the metrics of the server, of a registry of their own.
type serverMetrics struct {
	registry metrics.KubeRegistry
	requests *metrics.HistogramVec
	writes   *metrics.CounterVec
	objects  *metrics.GaugeVec
	refused  *metrics.Gauge
}

func newServerMetrics() *serverMetrics {
	m := &serverMetrics{
		registry: metrics.NewKubeRegistry(),
		requests: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name: "lockstep_externaldns_request_duration_seconds", Help: "Duration of the answers to external-dns.", StabilityLevel: metrics.ALPHA,
			Buckets: metrics.ExponentialBuckets(0.001, 4, 8),
		}, []string{"request", "ok"}),
		writes: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: "lockstep_externaldns_writes_total", Help: "DNSEndpoints written or deleted, by result: stored, refused or failed.", StabilityLevel: metrics.ALPHA,
		}, []string{"result"}),
		objects: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name: "lockstep_externaldns_objects", Help: "DNSEndpoints at the last request for records: stored, and those of them that are not accepted.", StabilityLevel: metrics.ALPHA,
		}, []string{"state"}),
		refused: metrics.NewGauge(&metrics.GaugeOpts{
			Name: "lockstep_externaldns_refused_records", Help: "Records that external-dns found last and that cannot be served.", StabilityLevel: metrics.ALPHA,
		}),
	}
	m.registry.MustRegister(m.requests, m.writes, m.objects, m.refused)
	m.registry.RawMustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *serverMetrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *serverMetrics) observe(method, path string, err error, took time.Duration) {
	m.requests.WithLabelValues(method+" "+path, strconv.FormatBool(err == nil)).Observe(took.Seconds())
}

func (m *serverMetrics) countWrite(err error) {
	result := "stored"
	if no := (refusedError{}); errors.As(err, &no) {
		result = "refused"
	} else if err != nil {
		result = "failed"
	}
	m.writes.WithLabelValues(result).Inc()
}

func (m *serverMetrics) setStored(stored, unaccepted int) {
	m.objects.WithLabelValues("stored").Set(float64(stored))
	m.objects.WithLabelValues("unaccepted").Set(float64(unaccepted))
}

func (m *serverMetrics) setRefused(records int) { m.refused.Set(float64(records)) }
