package cachehealth

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestFailingCacheIsNotSynced(t *testing.T) {
	m := NewMonitor()
	for _, step := range []struct {
		err  error
		want float64
	}{{nil, 1}, {errors.New("connection refused"), 0}, {nil, 1}} {
		m.report("Example", step.err)
		if got := testutil.ToFloat64(synced.WithLabelValues("Example")); got != step.want {
			t.Errorf("after %v: %v, want %v", step.err, got, step.want)
		}
	}
}
