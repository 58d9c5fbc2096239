package sidecar

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	base "k8s.io/component-base/metrics"
)

type metrics struct {
	registry base.KubeRegistry
	requests *base.CounterVec
	duration *base.HistogramVec
	// notifies counts NOTIFYs by the rcode of our response; streams is the number of open notification streams.
	notifies *base.CounterVec
	streams  *base.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		registry: base.NewKubeRegistry(),
		requests: base.NewCounterVec(&base.CounterOpts{
			Name: "bindcar_requests_total", Help: "Requests by route and status.", StabilityLevel: base.ALPHA,
		}, []string{"route", "code"}),
		duration: base.NewHistogramVec(&base.HistogramOpts{
			Name: "bindcar_request_duration_seconds", Help: "Time to answer a request, by route.", StabilityLevel: base.ALPHA,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route"}),
		notifies: base.NewCounterVec(&base.CounterOpts{
			Name: "bindcar_notifies_total", Help: "NOTIFY messages from named, by the code they were answered with.", StabilityLevel: base.ALPHA,
		}, []string{"rcode"}),
		streams: base.NewGauge(&base.GaugeOpts{
			Name: "bindcar_notice_streams", Help: "Open streams of notices.", StabilityLevel: base.ALPHA,
		}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.notifies, m.streams)
	m.registry.RawMustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// instrument observes every request under its route's pattern, never under a path that a caller chose.
func (m *metrics) instrument(api *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, route := api.Handler(r)
		recorder := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		start := time.Now()
		api.ServeHTTP(recorder, r)
		m.duration.WithLabelValues(route).Observe(time.Since(start).Seconds())
		m.requests.WithLabelValues(route, strconv.Itoa(recorder.code)).Inc()
	})
}

type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (r *statusRecorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
