// Package httperror maps errors to the error responses of the sidecar's HTTP API, and reads and writes its JSON bodies.
package httperror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/declared/status/reason"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// Error is an error with the HTTP status and body of its response.
type Error struct {
	Code int
	bindcar.Failure
}

// Error has the form title: details, as the body of the response.
func (e *Error) Error() string { return e.Failure.Error + ": " + e.Details }

// New returns an error response.
func New(code int, title, details string) *Error {
	return &Error{code, bindcar.Failure{Error: title, Details: details}}
}

// BadRequest answers a request with an invalid field.
func BadRequest(field string, err error) *Error {
	return New(http.StatusBadRequest, "bad request", fmt.Sprintf("%s: %v", field, err))
}

// FromError makes a response of any error: 4xx for what named refuses about a zone, 503 when named does not answer, and 500 for
// everything else.
func FromError(err error) *Error {
	var known *Error
	var refused *rndc.CommandError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused) && refused.NotFound():
		return New(http.StatusNotFound, "zone not found", refused.Message)
	case errors.As(err, &refused) && refused.Exists():
		return New(http.StatusConflict, "zone exists", refused.Message)
	case errors.As(err, &refused):
		return New(http.StatusBadRequest, "named refused the command", refused.Error())
	case errors.Is(err, rndc.ErrAuth):
		return New(http.StatusInternalServerError, reason.RNDCAuthenticationFailed, err.Error())
	case IsUnavailable(err):
		return New(http.StatusServiceUnavailable, "named does not answer", err.Error())
	}
	return New(http.StatusInternalServerError, "internal error", err.Error())
}

// IsNotFound reports whether there is no such zone.
func IsNotFound(err error) bool { return err != nil && FromError(err).Code == http.StatusNotFound }

// IsUnavailable reports whether named could not be reached.
func IsUnavailable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// WriteJSON sends a response.
func WriteJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// WriteError sends and logs the response for an error.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	e := FromError(err)
	if e.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if log := klog.FromContext(r.Context()).V(logLevel(e.Code)); log.Enabled() {
		log.Info("request failed", "method", r.Method, "path", r.URL.Path, "code", e.Code, "reason", e.Error())
	}
	WriteJSON(w, e.Code, e.Failure)
}

// logLevel keeps responses that callers can provoke at will out of the usual log.
func logLevel(code int) int {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return 4
	}
	return 0
}

// ReadJSON decodes a request's body of at most limit bytes. It ignores unknown fields: newer callers may send them.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64, out any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch err := decoder.Decode(out); {
	case errors.As(err, &tooLarge):
		return New(http.StatusRequestEntityTooLarge, "body too large", fmt.Sprintf("the limit is %d bytes", tooLarge.Limit))
	case err != nil:
		return BadRequest("body", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return BadRequest("body", errors.New("there is more than one JSON value"))
	}
	return nil
}
