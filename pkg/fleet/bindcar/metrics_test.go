package bindcar

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	basetestutil "k8s.io/component-base/metrics/testutil"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

func TestCallsAreCountedByCode(t *testing.T) {
	if err := component.RegisterMetrics(); err != nil {
		t.Fatal(err)
	}
	calls.Reset()
	countCall(http.MethodGet, nil)
	countCall(http.MethodPost, &http.Response{StatusCode: http.StatusConflict})
	for code := 600; code < 900; code++ { // Whatever a server answers adds one series.
		countCall(http.MethodPost, &http.Response{StatusCode: code})
	}
	if n := testutil.CollectAndCount(calls); n != 3 {
		t.Errorf("%d series, want 3", n)
	}
	if n, err := basetestutil.GetCounterMetricValue(calls.WithLabelValues(http.MethodPost, "409")); n != 1 || err != nil {
		t.Errorf("conflicts: %v (%v), want 1", n, err)
	}
}
