package bindcar

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// calls counts requests to sidecars in the whole process.
var calls = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "lockstep_sidecar_calls_total", Help: "Requests to sidecars by method and HTTP status code; none when there was no answer.",
}, []string{"method", "code"})

func init() { metrics.Registry.MustRegister(calls) }

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
