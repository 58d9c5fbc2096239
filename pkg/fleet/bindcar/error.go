package bindcar

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/declared/status/reason"
)

// Error is an error response of a sidecar, or the failure to reach it.
type Error struct {
	// Code is the HTTP status, 0 without a response.
	Code int
	// Reason is a condition reason.
	Reason string
	// Message says what happened, as a sentence without its subject: "cannot connect to Bindcar API".
	Message string
	// Details are the sidecar's own words, or the text of the network error.
	Details string
	// Err is the network error, if that is what it was.
	Err error
}

// Error is the Sentence with its subject.
func (e *Error) Error() string {
	return "bindcar: " + e.Sentence()
}

// Unwrap is what kept a response from coming, nil if one came.
func (e *Error) Unwrap() error { return e.Err }

// Sentence says what happened, with details, as a sentence without its subject.
func (e *Error) Sentence() string {
	if e.Details == "" {
		return e.Message
	}
	return e.Message + ": " + e.Details
}

// Transient reports whether the same request may succeed later without anybody changing anything.
func (e *Error) Transient() bool {
	switch e.Code {
	case 0, http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusFailedDependency:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return e.Code >= 500 && e.Reason != reason.RNDCAuthenticationFailed
}

// IsExists reports whether the zone was there already.
func IsExists(err error) bool { return hasCode(err, http.StatusConflict) }

// IsNotFound reports whether the server has no such zone.
func IsNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

// IsNotSupported reports whether the sidecar cannot do what was asked: it is of another version, or not ours.
func IsNotSupported(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason.BindcarNotImplemented
}

func hasCode(err error, code int) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// newError returns the Error of an HTTP status, with the reason and message for a condition.
func newError(code int, failure Failure) *Error {
	e := &Error{Code: code, Details: shorten(cmp.Or(failure.Details, failure.Error))}
	switch code {
	case http.StatusBadRequest:
		e.Reason, e.Message = reason.BindcarBadRequest, "was sent an invalid request to Bindcar API (400)"
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Reason, e.Message = reason.BindcarAuthFailed, "reports that Bindcar authentication failed"
	case http.StatusNotFound:
		e.Reason, e.Message = reason.ZoneNotFound, "reports zone or resource not found in BIND9 (404)"
	case http.StatusFailedDependency:
		e.Reason, e.Message = reason.UpstreamUnreachable, "cannot connect to a primary of the zone (424)"
	case http.StatusInternalServerError:
		e.Reason, e.Message = reason.BindcarInternalError, "reports a Bindcar API internal error (500)"
	case http.StatusNotImplemented:
		e.Reason, e.Message = reason.BindcarNotImplemented, "reports operation not supported by Bindcar (501)"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Reason, e.Message = reason.GatewayError, fmt.Sprintf("has a gateway error reaching Bindcar (%d)", code)
	case http.StatusConflict:
		e.Reason, e.Message = reason.BindcarUnreachable, "already has the zone (409)"
	default:
		e.Reason, e.Message = reason.BindcarUnreachable, fmt.Sprintf("gave an unexpected HTTP error from Bindcar (%d)", code)
	}
	if failure.Error == reason.RNDCAuthenticationFailed {
		e.Reason, e.Message = reason.RNDCAuthenticationFailed, "cannot authenticate to its named"
	}
	return e
}

// maxDetails bounds, in bytes, what of a sidecar's words gets into statuses.
const maxDetails = 512

// shorten makes one line of a text, and not too long a one.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxDetails {
		text = strings.ToValidUTF8(text[:maxDetails], "") + "…"
	}
	return text
}

// connectionError is for a request without a response. A sidecar refuses our certificate with an alert (RFC 8446 section 6.2), which
// passes: one of the two has yet to be issued a new certificate.
func connectionError(err error) *Error {
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" { // as crypto/tls reports alerts
		return &Error{Reason: reason.BindcarAuthFailed, Message: "does not accept our certificate", Details: err.Error(), Err: err}
	}
	return unreachable(err)
}

func unreachable(err error) *Error {
	details := err.Error()
	if verification := (*tls.CertificateVerificationError)(nil); errors.As(err, &verification) {
		details = certificateProblem(verification)
	}
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		details = network.Err.Error() // without addresses, of which our own is another one each time
	}
	return &Error{Reason: reason.BindcarUnreachable, Message: "cannot connect to Bindcar API", Details: details, Err: err}
}

// certificateProblem is what kind of problem a certificate has. Whatever is at the address may be somebody else's server: the names and
// authorities in its certificate are not for everybody who may read a status.
func certificateProblem(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "the certificate there is of another authority"
	case errors.As(err, &name):
		return "the certificate there is not of this instance"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate there has expired, or is not valid yet"
	}
	return "the certificate there is not valid"
}
