package ask

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// Bounds of the series by server: how many servers have their own, and for how long after they were last asked; the others share
// one without names.
const (
	maxMeteredServers = 256
	meteredTimeout    = 10 * time.Minute
)

// meter counts questions and answers. Nothing is counted before it is registered.
type meter struct {
	probes       *metrics.HistogramVec
	unanswered   *metrics.CounterVec
	questions    *metrics.CounterVec
	sweeps       *metrics.GaugeVec
	observations *metrics.CounterVec
	transfers    *metrics.CounterVec
	now          func() time.Time

	mu      sync.Mutex
	servers map[observe.Peer]*meteredServer
	// of counts the servers of each namespace.
	of map[string]int
}

// meteredServer is a server that has series of its own.
type meteredServer struct {
	namespace, pod string
	asked          time.Time
}

func newMeter(now func() time.Time) *meter {
	const subsystem = "syncstatus"
	return &meter{
		probes: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: "lockstep", Subsystem: subsystem, Name: "probe_duration_seconds",
			Help:    "Time from a question for a zone's SOA to the DNS server's answer, by server.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2}, StabilityLevel: metrics.ALPHA,
		}, []string{"namespace", "pod"}),
		unanswered: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "lockstep", Subsystem: subsystem, Name: "probes_unanswered_total",
			Help: "Questions for a zone's SOA that a DNS server has not answered, by server.", StabilityLevel: metrics.ALPHA,
		}, []string{"namespace", "pod"}),
		questions: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "lockstep", Subsystem: subsystem, Name: "questions_total",
			Help: "Questions for RRsets to DNS servers that are read by query, by server and result (answered, failed).", StabilityLevel: metrics.ALPHA,
		}, []string{"namespace", "pod", "result"}),
		sweeps: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: "lockstep", Subsystem: subsystem, Name: "last_sweep_duration_seconds",
			Help: "Duration of the last sweep over a zone of a DNS server that is read by query, by server.", StabilityLevel: metrics.ALPHA,
		}, []string{"namespace", "pod"}),
		observations: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "lockstep", Subsystem: subsystem, Name: "observations_total",
			Help: "Observations of a zone on a server that were needed, by where they came from: asked of the server, " +
				"shared with somebody who was asking already, or kept from before.", StabilityLevel: metrics.ALPHA,
		}, []string{"from"}),
		transfers: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "lockstep", Subsystem: subsystem, Name: "transfers_total",
			Help: "Zone transfers from DNS servers, by type (full, incremental) and result (done, failed).", StabilityLevel: metrics.ALPHA,
		}, []string{"type", "result"}),
		now: now, servers: map[observe.Peer]*meteredServer{}, of: map[string]int{},
	}
}

// Asked implements observe.Meter.
func (m *meter) Asked(server observe.Peer, answered bool, took time.Duration) {
	namespace, pod := m.labelsOf(server)
	if answered {
		m.probes.WithLabelValues(namespace, pod).Observe(took.Seconds())
	} else {
		m.unanswered.WithLabelValues(namespace, pod).Inc()
	}
}

// Questioned implements observe.Meter.
func (m *meter) Questioned(server observe.Peer, err error) {
	namespace, pod := m.labelsOf(server)
	result := "answered"
	if err != nil {
		result = "failed"
	}
	m.questions.WithLabelValues(namespace, pod, result).Inc()
}

// noteSweep keeps how long a sweep over a zone on a server took.
func (m *meter) noteSweep(server observe.Peer, took time.Duration) {
	namespace, pod := m.labelsOf(server)
	m.sweeps.WithLabelValues(namespace, pod).Set(took.Seconds())
}

// Observed implements observe.Meter.
func (m *meter) Observed(from observe.Origin) { m.observations.WithLabelValues(string(from)).Inc() }

// Transferred implements observe.Meter.
func (m *meter) Transferred(full bool, err error) {
	kind, result := "incremental", "done"
	if full {
		kind = "full"
	}
	if err != nil {
		result = "failed"
	}
	m.transfers.WithLabelValues(kind, result).Inc()
}

// nameServer notes the name of a server, before it is asked.
func (m *meter) nameServer(s observe.Server) {
	peer := s.Peer()
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.servers[peer]; known != nil {
		if known.asked = m.now(); known.pod == s.Pod {
			return
		}
		m.dropSeries(peer)
	}
	if len(m.servers) >= maxMeteredServers {
		m.sweepOldSeries()
	}
	if len(m.servers) >= maxMeteredServers {
		m.makeRoom(s.Namespace)
	}
	if len(m.servers) < maxMeteredServers {
		m.servers[peer] = &meteredServer{s.Namespace, s.Pod, m.now()}
		m.of[s.Namespace]++
	}
}

// makeRoom ends the series of a server of the namespace with the most, the one that was asked the longest ago, if that leaves it with no
// fewer than the namespace that wants one: whoever makes servers without end takes no series from others. m.mu is held.
func (m *meter) makeRoom(namespace string) {
	most := ""
	for other, n := range m.of {
		if n > m.of[most] || n == m.of[most] && other < most {
			most = other
		}
	}
	if m.of[most] <= m.of[namespace]+1 {
		return
	}
	var oldest observe.Peer
	for peer, known := range m.servers {
		if known.namespace == most && (m.servers[oldest] == nil || known.asked.Before(m.servers[oldest].asked)) {
			oldest = peer
		}
	}
	m.dropSeries(oldest)
}

// labelsOf are the labels of a server's series; empty for the series that all others share.
func (m *meter) labelsOf(server observe.Peer) (namespace, pod string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.servers[server]; known != nil {
		return known.namespace, known.pod
	}
	return "", ""
}

// sweepOldSeries ends the series of servers that nobody has asked for long. m.mu is held.
func (m *meter) sweepOldSeries() {
	for peer, known := range m.servers {
		if m.now().Sub(known.asked) > meteredTimeout {
			m.dropSeries(peer)
		}
	}
}

// dropSeries ends a server's series, unless the pod has another address by now. m.mu is held.
func (m *meter) dropSeries(peer observe.Peer) {
	gone := m.servers[peer]
	delete(m.servers, peer)
	if m.of[gone.namespace]--; m.of[gone.namespace] == 0 {
		delete(m.of, gone.namespace)
	}
	for _, other := range m.servers {
		if other.namespace == gone.namespace && other.pod == gone.pod {
			return
		}
	}
	labels := map[string]string{"namespace": gone.namespace, "pod": gone.pod}
	m.probes.Delete(labels)
	m.unanswered.Delete(labels)
	m.sweeps.Delete(labels)
	for _, result := range []string{"answered", "failed"} {
		m.questions.Delete(map[string]string{"namespace": gone.namespace, "pod": gone.pod, "result": result})
	}
}

// Metrics are those about questions and answers.
func (a *Asker) Metrics() []metrics.Registerable {
	m := a.meter
	return []metrics.Registerable{m.probes, m.unanswered, m.questions, m.sweeps, m.observations, m.transfers}
}

// Sizes measures what is kept of servers' answers.
func (a *Asker) Sizes() observe.Sizes { return a.observer.Sizes() }
