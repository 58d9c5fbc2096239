package bindcar

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestCallsAreCountedByCode(t *testing.T) {
	calls.Reset()
	countCall(http.MethodGet, nil)
	countCall(http.MethodPost, &http.Response{StatusCode: http.StatusConflict})
	for code := 600; code < 900; code++ { // Whatever a server answers adds one series.
		countCall(http.MethodPost, &http.Response{StatusCode: code})
	}
	if n := testutil.CollectAndCount(calls); n != 3 {
		t.Errorf("%d series, want 3", n)
	}
	if n := testutil.ToFloat64(calls.WithLabelValues(http.MethodPost, "409")); n != 1 {
		t.Errorf("conflicts: %v, want 1", n)
	}
}
