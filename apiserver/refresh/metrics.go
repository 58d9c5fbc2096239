package refresh

import (
	"time"

	"k8s.io/component-base/metrics"
)

// RegisterMetrics registers the metrics, once in a registry. watches returns the number of open watches.
func (r *Refresher) RegisterMetrics(register func(metrics.Registerable) error, custom func(metrics.StableCollector) error, watches func() int) error {
	for _, m := range r.asker.Metrics() {
		if err := register(m); err != nil {
			return err
		}
	}
	return custom(&sizeCollector{refresher: r, watches: watches})
}

// Of the zones that somebody has asked about lately, by what a validating resolver makes of them.
var (
	zonesDesc = metrics.NewDesc("lockstep_syncstatus_zones",
		"Zones that somebody has asked about in the last ten minutes, by what a validating resolver makes of the answers of their servers: the most serious verdict.",
		[]string{"security"}, nil, metrics.ALPHA, "")
	expiryDesc = metrics.NewDesc("lockstep_syncstatus_first_signature_expiry_timestamp_seconds",
		"When the first of the signatures of these zones expires; absent if none is signed.", nil, nil, metrics.ALPHA, "")
)

// collectSecurity measures what is known of the zones' security at that moment.
func (c *sizeCollector) collectSecurity(ch chan<- metrics.Metric) {
	zones, first := c.refresher.evaluator.CountZones(time.Now())
	for security, n := range zones {
		ch <- metrics.NewLazyConstMetric(zonesDesc, metrics.GaugeValue, float64(n), string(security))
	}
	if !first.IsZero() {
		ch <- metrics.NewLazyConstMetric(expiryDesc, metrics.GaugeValue, float64(first.Unix()))
	}
}

// sizeCollector measures, when it is asked, what is held at that moment.
type sizeCollector struct {
	metrics.BaseStableCollector
	refresher *Refresher
	watches   func() int
}

func newGauge(name, help string) *metrics.Desc {
	return metrics.NewDesc("lockstep_syncstatus_"+name, help, nil, nil, metrics.ALPHA, "")
}

// sizeDescs are in the order in which CollectWithStability measures.
var sizeDescs = []*metrics.Desc{
	newGauge("servers", "DNS servers with cached state."),
	newGauge("mirrors", "Zones on servers of which the content is kept."),
	newGauge("mirror_rrsets", "RRsets in all mirrors, whether or not they share memory."),
	newGauge("watches", "Open watches."),
	newGauge("watched_namespaces", "Namespaces that somebody watches."),
	newGauge("notice_streams", "DNS servers with a live notification stream."),
	newGauge("questions_waiting", "Questions for RRsets to DNS servers that are read by query which wait for their turn."),
}

// DescribeWithStability implements metrics.StableCollector.
func (c *sizeCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range append(sizeDescs[:len(sizeDescs):len(sizeDescs)], zonesDesc, expiryDesc) {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *sizeCollector) CollectWithStability(ch chan<- metrics.Metric) {
	sizes := c.refresher.asker.Sizes()
	streams := len(c.refresher.streams.liveServers())
	for i, n := range []int{sizes.Servers, sizes.Mirrors, sizes.RRsets, c.watches(), c.refresher.trackers.countTrackers(), streams, sizes.Waiting} {
		ch <- metrics.NewLazyConstMetric(sizeDescs[i], metrics.GaugeValue, float64(n))
	}
	c.collectSecurity(ch)
}
