package syncevent

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Metrics counts passes and status writes. It is a Listener. Nothing has a label whose values users choose: a controller
// may have 10,000 zones. What one zone or record is about is in its status and its syncstatus.
type Metrics struct {
	passes                      *prometheus.CounterVec
	took                        prometheus.Histogram
	changes, writes             *prometheus.CounterVec
	drift                       prometheus.Counter
	queueDepth                  prometheus.Gauge
	unprogrammed, refused       prometheus.Gauge
	foreign, zones, zonesPaused prometheus.Gauge

	mu    sync.Mutex
	state map[types.NamespacedName]zoneGauges
}

// zoneGauges is what a zone adds to the gauges.
type zoneGauges struct {
	unprogrammed, refused, foreign int
	paused                         bool
}

// NewMetrics makes the metrics and registers them, unless r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "lockstep", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "lockstep", Name: name, Help: help})
	}
	m := &Metrics{
		passes: counter("zone_passes_total", "Passes over zones, by outcome: unchanged, changed, partial, failed or paused.", "outcome"),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "lockstep", Name: "zone_pass_duration_seconds", Help: "How long passes over zones take.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}),
		changes: counter("rrset_changes_total", "RRsets changed on primaries, by change: create, update or delete.", "change"),
		drift: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "lockstep", Name: "drift_corrected_total",
			Help: "RRsets put right after somebody else had changed them on a server."}),
		writes:       counter("status_writes_total", "Statuses written, by kind and result: written, conflict (tried again) or failed (tried again).", "kind", "result"),
		queueDepth:   gauge("status_queue_depth", "Objects whose status has still to be looked at."),
		unprogrammed: gauge("rrsets_unprogrammed", "RRsets that not all primaries of their zone serve as declared."),
		refused:      gauge("declarations_refused", "Records and endpoints that are Invalid or in Conflict."),
		foreign:      gauge("rrsets_foreign", "RRsets in zones that no object declares."),
		zones:        gauge("zones", "Zones that have been passed over since the start."),
		zonesPaused:  gauge("zones_paused", "Zones that are only watched."),
		state:        map[types.NamespacedName]zoneGauges{},
	}
	if r != nil {
		r.MustRegister(m.passes, m.took, m.changes, m.drift, m.writes, m.queueDepth, m.unprogrammed, m.refused, m.foreign, m.zones, m.zonesPaused)
	}
	return m
}

// OnSyncCompleted implements Listener.
func (m *Metrics) OnSyncCompleted(e SyncCompleted) {
	m.passes.WithLabelValues(passOutcome(e)).Inc()
	m.took.Observe(e.Took.Seconds())
	for change, n := range map[string]int{"create": len(e.Changes.Create), "update": len(e.Changes.UpdateNew), "delete": len(e.Changes.Delete)} {
		m.changes.WithLabelValues(change).Add(float64(n))
	}
	m.drift.Add(float64(e.Drift))
	now := zoneGauges{unprogrammed: len(e.Unprogrammed), foreign: e.Foreign, paused: e.Paused}
	if e.Desired != nil {
		now.refused = e.Desired.Refused
		if !e.Problem.Holds() {
			now.unprogrammed = e.Desired.Len()
		}
	}
	m.setGauges(client.ObjectKeyFromObject(e.Zone), &now)
}

// Forget takes a zone that is gone out of the gauges.
func (m *Metrics) Forget(zone types.NamespacedName) { m.setGauges(zone, nil) }

func (m *Metrics) setGauges(zone types.NamespacedName, now *zoneGauges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.state[zone]
	delete(m.state, zone)
	after := zoneGauges{}
	if now != nil {
		after, m.state[zone] = *now, *now
	}
	m.unprogrammed.Add(float64(after.unprogrammed - before.unprogrammed))
	m.refused.Add(float64(after.refused - before.refused))
	m.foreign.Add(float64(after.foreign - before.foreign))
	m.zonesPaused.Add(float64(boolToInt(after.paused) - boolToInt(before.paused)))
	m.zones.Set(float64(len(m.state)))
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// passOutcome returns one word for a pass, the label of its counter.
func passOutcome(e SyncCompleted) string {
	switch {
	case !e.Problem.Holds():
		return "failed"
	case e.Paused:
		return "paused"
	case len(e.Unprogrammed) > 0:
		return "partial"
	case e.Changes.HasChanges():
		return "changed"
	default:
		return "unchanged"
	}
}

// countWrite counts an attempt to write a status.
func (m *Metrics) countWrite(kind string, err error) {
	result := "written"
	switch {
	case apierrors.IsConflict(err):
		result = "conflict"
	case err != nil:
		result = "failed"
	}
	m.writes.WithLabelValues(kind, result).Inc()
}
