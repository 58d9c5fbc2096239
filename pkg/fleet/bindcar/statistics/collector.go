package statistics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// maxAge is how old the statistics behind the metrics may be: anybody may read metrics, as often as they like, without a
// load on named.
const maxAge = 5 * time.Second

// Collector exports named's statistics as metrics, under the usual names of exporters for BIND. It is a
// prometheus.Collector.
type Collector struct {
	// Read returns the current statistics.
	Read func(context.Context) (bindcar.Statistics, error)

	mu    sync.Mutex
	stats bindcar.Statistics
	err   error
	at    time.Time
}

var (
	bindUp         = prometheus.NewDesc("bind_up", "Whether named's statistics could be read.", nil, nil)
	bindInfo       = prometheus.NewDesc("bind_info", "The version of named.", []string{"version"}, nil)
	bindBoot       = prometheus.NewDesc("bind_boot_time_seconds", "When named was started, as Unix time.", nil, nil)
	bindConfig     = prometheus.NewDesc("bind_config_time_seconds", "When named read its configuration last, as Unix time.", nil, nil)
	bindZones      = prometheus.NewDesc("bind_zones", "Zones, by their type.", []string{"type"}, nil)
	bindLoaded     = prometheus.NewDesc("bind_zones_loaded", "Zones that have data.", nil, nil)
	bindRequests   = prometheus.NewDesc("bind_incoming_requests_total", "Requests, by opcode.", []string{"opcode"}, nil)
	bindQueries    = prometheus.NewDesc("bind_incoming_queries_total", "Queries, by type.", []string{"type"}, nil)
	bindRcodes     = prometheus.NewDesc("bind_response_rcodes_total", "Responses, by rcode.", []string{"rcode"}, nil)
	bindSucceeded  = prometheus.NewDesc("bind_zone_transfer_success_total", "Zones transferred from another server.", nil, nil)
	bindFailed     = prometheus.NewDesc("bind_zone_transfer_failure_total", "Transfers from another server that failed.", nil, nil)
	bindServed     = prometheus.NewDesc("bind_zone_transfer_served_total", "Transfers to other servers.", nil, nil)
	bindRefused    = prometheus.NewDesc("bind_zone_transfer_rejected_total", "Transfers that were refused to others.", nil, nil)
	bindNotifies   = prometheus.NewDesc("bind_notifies_total", "NOTIFY messages.", []string{"result"}, nil)
	bindUpdates    = prometheus.NewDesc("bind_updates_total", "UPDATE messages, by result.", []string{"result"}, nil)
	bindLimited    = prometheus.NewDesc("bind_rate_limited_responses_total", "Responses over the rate limit.", []string{"result"}, nil)
	bindAllMetrics = []*prometheus.Desc{bindUp, bindInfo, bindBoot, bindConfig, bindZones, bindLoaded, bindRequests, bindQueries, bindRcodes,
		bindSucceeded, bindFailed, bindServed, bindRefused, bindNotifies, bindUpdates, bindLimited}
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range bindAllMetrics {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	count := func(desc *prometheus.Desc, value uint64, labels ...string) {
		send(desc, prometheus.CounterValue, float64(value), labels...)
	}
	counts := func(desc *prometheus.Desc, values map[string]uint64) {
		for label, value := range values {
			count(desc, value, label)
		}
	}
	stats, err := c.latestStatistics()
	if err != nil {
		klog.V(2).InfoS("no statistics", "reason", err.Error())
		send(bindUp, prometheus.GaugeValue, 0)
		return
	}
	send(bindUp, prometheus.GaugeValue, 1)
	send(bindInfo, prometheus.GaugeValue, 1, stats.Version)
	send(bindBoot, prometheus.GaugeValue, float64(stats.BootTime.Unix()))
	send(bindConfig, prometheus.GaugeValue, float64(stats.ConfigTime.Unix()))
	send(bindZones, prometheus.GaugeValue, float64(stats.Zones.Primary), bindcar.Primary)
	send(bindZones, prometheus.GaugeValue, float64(stats.Zones.Secondary), bindcar.Secondary)
	send(bindLoaded, prometheus.GaugeValue, float64(stats.Zones.Loaded))
	counts(bindRequests, stats.Requests)
	counts(bindQueries, stats.Queries)
	counts(bindRcodes, stats.Responses)
	count(bindSucceeded, stats.Transfers.Succeeded)
	count(bindFailed, stats.Transfers.Failed)
	count(bindServed, stats.Transfers.Served)
	count(bindRefused, stats.Transfers.Refused)
	counts(bindNotifies, map[string]uint64{"sent": stats.Notifies.Sent, "received": stats.Notifies.Received, "refused": stats.Notifies.Refused})
	counts(bindUpdates, map[string]uint64{"done": stats.Updates.Done, "refused": stats.Updates.Refused, "failed": stats.Updates.Failed,
		"unmet_prerequisite": stats.Updates.UnmetPrerequisite})
	counts(bindLimited, map[string]uint64{"truncated": stats.RateLimited.Truncated, "dropped": stats.RateLimited.Dropped})
}

// latestStatistics reads the statistics anew when they are too old.
func (c *Collector) latestStatistics() (bindcar.Statistics, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= maxAge {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.stats, c.err = c.Read(ctx)
		c.at = time.Now()
	}
	return c.stats, c.err
}
