package bindcar

import (
	"encoding/json"
	"errors"
	"net/http"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// httpFailure is an error with the status and body that it is answered with.
type httpFailure struct {
	code int
	Failure
}

func (f *httpFailure) Error() string { return f.Failure.Error + ": " + f.Details }

func failure(code int, title, details string) *httpFailure {
	return &httpFailure{code, Failure{Error: title, Details: details}}
}

// failureOf finds the answer for an error: what named refused about a zone is the caller's business, a named that does
// not answer is 503, all else is our own fault.
func failureOf(err error) *httpFailure {
	var f *httpFailure
	var refused *named.CommandError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &refused) && refused.NotFound():
		return failure(http.StatusNotFound, "zone not found", refused.Message)
	case errors.As(err, &refused) && refused.Exists():
		return failure(http.StatusConflict, "zone exists", refused.Message)
	case errors.As(err, &refused):
		return failure(http.StatusBadRequest, "named refused the command", refused.Error())
	case errors.Is(err, named.ErrControlAuth):
		return failure(http.StatusInternalServerError, status.RNDCAuthenticationFailed, err.Error())
	case isNetwork(err):
		return failure(http.StatusServiceUnavailable, "named does not answer", err.Error())
	}
	return failure(http.StatusInternalServerError, "internal error", err.Error())
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func respondError(w http.ResponseWriter, r *http.Request, err error) {
	f := failureOf(err)
	if f.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if f.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if log := klog.FromContext(r.Context()).V(verbosityOf(f.code)); log.Enabled() {
		log.Info("request failed", "method", r.Method, "path", r.URL.Path, "code", f.code, "reason", f.Error())
	}
	respond(w, f.code, f.Failure)
}

// verbosityOf keeps answers that callers bring about at will out of the usual log.
func verbosityOf(code int) int {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return 4
	}
	return 0
}
