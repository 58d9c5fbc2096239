package apiserver

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/store"
)

// clampTimeout shortens the duration of a watch to the longest possible. Kubernetes' library counts it in nanoseconds, and ends
// a watch at once whose duration overflows.
func clampTimeout(next http.Handler) http.Handler {
	const parameter, longest = "timeoutSeconds", int64(store.MaxWatchDuration / time.Second)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if seconds, err := strconv.ParseInt(query.Get(parameter), 10, 64); err == nil && seconds > longest {
			query.Set(parameter, strconv.FormatInt(longest, 10))
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
		}
		next.ServeHTTP(w, r)
	})
}
