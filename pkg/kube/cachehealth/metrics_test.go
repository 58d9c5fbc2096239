package cachehealth

import (
	"errors"
	"testing"

	"k8s.io/component-base/metrics/testutil"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

func TestFailingCacheIsNotSynced(t *testing.T) {
	if err := component.RegisterMetrics(); err != nil {
		t.Fatal(err)
	}
	m := NewMonitor()
	for _, step := range []struct {
		err  error
		want float64
	}{{nil, 1}, {errors.New("connection refused"), 0}, {nil, 1}} {
		m.report("Example", step.err)
		if got, err := testutil.GetGaugeMetricValue(synced.WithLabelValues("Example")); got != step.want || err != nil {
			t.Errorf("after %v: %v (%v), want %v", step.err, got, err, step.want)
		}
	}
}
