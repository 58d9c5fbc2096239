package statuswriter

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
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
	lastPass, lastSuccess       prometheus.Gauge
	failedZones, delegated      *prometheus.GaugeVec
	propagation                 propagation

	// Waiting returns when the oldest change was noticed that no pass has taken yet, zero when there is none. Nil stands for none.
	Waiting func() time.Time

	mu    sync.Mutex
	state map[types.NamespacedName]zoneGauges
}

// zoneGauges is what a zone adds to the gauges.
type zoneGauges struct {
	unprogrammed, refused, foreign int
	paused                         bool
	// problem is the reason why nothing of the zone can be programmed.
	problem string
	delegation
}

// delegation is how far the zones above a zone have its DS records.
type delegation struct {
	// reason is that of the condition Delegated, state its status; empty if there is no such condition.
	reason, state string
	// behind is since when a zone above has had other DS records than those that the zone asks for; elsewhere is true if it is not declared here.
	behind    time.Time
	elsewhere bool
}

func delegationOf(e SyncCompleted) (d delegation) {
	if e.DNSSEC == nil {
		return d
	}
	d.reason, d.state, d.behind = e.Delegated.Reason, string(e.Delegated.Status), e.DelegationBehind
	d.elsewhere = e.DNSSEC.Delegation != nil && e.DNSSEC.Delegation.ParentElsewhere != ""
	return d
}

// NewMetrics returns the metrics and registers them, unless r is nil.
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
		lastPass:     gauge("last_pass_timestamp_seconds", "When a pass over a zone last ended, whatever its outcome."),
		lastSuccess:  gauge("last_successful_pass_timestamp_seconds", "When a pass last ended with every RRset of its zone programmed."),
		failedZones: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "lockstep", Name: "zones_failed",
			Help: "Zones of which nothing can be programmed, by the reason of their Ready condition."}, []string{"reason"}),
		delegated: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "lockstep", Name: "zones_delegated",
			Help: "Signed zones with a zone above that is known, by status and reason of their Delegated condition."}, []string{"status", "reason"}),
		propagation: propagation{zones: map[types.NamespacedName][]batch{}, took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "lockstep", Name: "change_propagation_seconds",
			Help:    "Time from a change of a declaration in Kubernetes to all servers of its zone serving it; one measurement for the changes that a pass takes.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		})},
		state: map[types.NamespacedName]zoneGauges{},
	}
	unsynced := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "lockstep", Name: "oldest_unsynced_change_age_seconds",
		Help: "Age of the oldest change that not all servers of its zone serve; 0 when there is none."}, func() float64 { return m.oldestAge(time.Now()) })
	behind := func(parent string, elsewhere bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "lockstep", Name: "oldest_ds_change_age_seconds", ConstLabels: prometheus.Labels{"parent": parent},
			Help: "Age of the oldest change of DS records that a zone above has not followed; 0 when there is none."},
			func() float64 { return m.oldestDSChange(elsewhere, time.Now()) })
	}
	if r != nil {
		r.MustRegister(behind("declared", false), behind("elsewhere", true), m.delegated,
			m.passes, m.took, m.changes, m.drift, m.writes, m.queueDepth, m.unprogrammed, m.refused, m.foreign, m.zones, m.zonesPaused,
			m.lastPass, m.lastSuccess, m.failedZones, m.propagation.took, unsynced)
	}
	return m
}

// OnSyncCompleted takes over the outcome of a pass.
func (m *Metrics) OnSyncCompleted(e SyncCompleted) {
	m.passes.WithLabelValues(passOutcome(e)).Inc()
	m.took.Observe(e.Took.Seconds())
	for change, n := range map[string]int{"create": len(e.Changes.Create), "update": len(e.Changes.UpdateNew), "delete": len(e.Changes.Delete)} {
		m.changes.WithLabelValues(change).Add(float64(n))
	}
	m.drift.Add(float64(e.Drift))
	m.lastPass.Set(unixSeconds(e.At))
	if e.Programmed.Holds() && !e.Paused && len(e.Unprogrammed) == 0 {
		m.lastSuccess.Set(unixSeconds(e.At))
	}
	m.propagation.note(e)
	now := zoneGauges{unprogrammed: len(e.Unprogrammed), foreign: e.Foreign, paused: e.Paused, delegation: delegationOf(e)}
	if !e.Programmed.Holds() {
		now.problem = e.Programmed.Reason
	}
	if e.Desired != nil {
		now.refused = e.Desired.Refused
		if !e.Programmed.Holds() {
			now.unprogrammed = e.Desired.Len()
		}
	}
	m.setGauges(client.ObjectKeyFromObject(e.Zone), &now)
}

// Forget takes a zone that is gone out of the gauges.
func (m *Metrics) Forget(zone types.NamespacedName) {
	m.propagation.forget(zone)
	m.setGauges(zone, nil)
}

// oldestAge is the age of the oldest change that not all servers serve, in seconds.
func (m *Metrics) oldestAge(now time.Time) float64 {
	since := m.propagation.oldest()
	if m.Waiting != nil {
		since = status.Earlier(since, m.Waiting())
	}
	if since.IsZero() {
		return 0
	}
	return now.Sub(since).Seconds()
}

// oldestDSChange is the age of the oldest change of DS records that a zone above, declared here or elsewhere, has not followed, in seconds.
func (m *Metrics) oldestDSChange(elsewhere bool, now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var since time.Time
	for _, z := range m.state {
		if z.elsewhere == elsewhere {
			since = status.Earlier(since, z.behind)
		}
	}
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Seconds())
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

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
	if before.problem != "" {
		m.failedZones.WithLabelValues(before.problem).Dec()
	}
	if after.problem != "" {
		m.failedZones.WithLabelValues(after.problem).Inc()
	}
	if before.reason != "" {
		m.delegated.WithLabelValues(before.state, before.reason).Dec()
	}
	if after.reason != "" {
		m.delegated.WithLabelValues(after.state, after.reason).Inc()
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// passOutcome is one word for a pass, the label of its counter.
func passOutcome(e SyncCompleted) string {
	switch {
	case !e.Programmed.Holds():
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
