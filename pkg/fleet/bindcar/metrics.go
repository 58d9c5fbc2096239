package bindcar

import (
	"net/http"
	"strconv"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

// calls counts requests to sidecars in the whole process.
var calls = metrics.NewCounterVec(&metrics.CounterOpts{
	Name: "lockstep_sidecar_calls_total", Help: "Requests to sidecars by method and HTTP status code; none when there was no answer.", StabilityLevel: metrics.ALPHA,
}, []string{"method", "code"})

func init() { component.DeclareMetrics(calls) }

// countCall counts a request by its response; nil stands for none. Codes that HTTP does not define are one series, since an image of a
// user's own may be at the other end.
func countCall(method string, response *http.Response) {
	code := "none"
	switch {
	case response == nil:
	case http.StatusText(response.StatusCode) == "":
		code = "other"
	default:
		code = strconv.Itoa(response.StatusCode)
	}
	calls.WithLabelValues(method, code).Inc()
}
