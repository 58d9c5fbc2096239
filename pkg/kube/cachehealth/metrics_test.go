package cachehealth

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"

	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"

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

// A cache that follows, and one that does not, are logged once, however often requests succeed and fail. The end of a watch is neither.
func TestCacheIsLoggedOnceEachWay(t *testing.T) {
	var lines []string
	klog.SetLogger(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	t.Cleanup(klog.ClearLogger)
	const follows, fails = `"level"=0 "msg"="cache follows the Kubernetes API" "type"="Example"`, `"level"=0 "msg"="cache does not follow the Kubernetes API" "type"="Example" "err"="refused"`
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		outcomes []error
		want     []string
	}{
		"good":          {[]error{nil, nil, errEnded, nil}, []string{follows}},
		"stalls":        {[]error{nil, refused, refused, nil, nil}, []string{follows, fails, follows}},
		"fails at once": {[]error{refused, refused, nil}, []string{fails, follows}},
	} {
		lines = nil
		m := NewMonitor()
		for _, err := range c.outcomes {
			m.report("Example", err)
		}
		if !slices.Equal(lines, c.want) {
			t.Errorf("%s: %q, want %q", name, lines, c.want)
		}
	}
}
