package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

// ErrReply means that the reply does not answer the request, or is no DNS message at all.
var ErrReply = errors.New("the reply does not match the request")

// ErrUnsendable means that a request could not be built or signed. Nothing was sent.
var ErrUnsendable = errors.New("the message cannot be sent")

// IsLocal is true for requests that failed on our side: they could not be built, their account has no more connections, or the process
// has no socket or memory left. The error says nothing about the server.
func IsLocal(err error) bool {
	return errors.Is(err, ErrUnsendable) || outbound.IsLimit(err) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// Error is the failure of one request to one server. Its text may be shown to users and contains no secret.
type Error struct {
	// Op is the request: "query", "update", "transfer" or "notify", or "connect" if it was not sent.
	Op string
	// Server is the address and port, Zone the zone (or name) in question.
	Server, Zone string
	// Rcode is the reply's response code; NOERROR (0) if there was no reply.
	Rcode int
	// TSIGError is the extended error of the reply's TSIG record: 16 BADSIG, 17 BADKEY, 18 BADTIME (RFC 8945 section 3).
	TSIGError uint16
	// Sent is true if the server may have acted on the request: it was sent and no valid reply came.
	Sent bool
	// Err is the cause if the server itself did not answer with an error.
	Err error
}

// Error has the form "update of zone at server: detail".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Zone != "" {
		b.WriteString(" of " + e.Zone)
	}
	b.WriteString(" at " + e.Server + ": " + e.Detail())
	return b.String()
}

// Unwrap gives errors.Is and errors.As the cause.
func (e *Error) Unwrap() error { return e.Err }

// Detail says what went wrong, without the operation and the server.
func (e *Error) Detail() string {
	switch e.TSIGError {
	case 0:
	case dns.RcodeBadKey:
		return "BADKEY: the server does not know the key"
	case dns.RcodeBadSig:
		return "BADSIG: the server has another secret for the key"
	case dns.RcodeBadTime:
		return "BADTIME: the server's clock differs from ours by more than five minutes"
	default:
		return "the server refused the signature with TSIG error " + RcodeName(int(e.TSIGError))
	}
	if e.RefusesKey() {
		return "answered NOTAUTH without a signature: the server does not know the key, has another secret for it, or its clock differs from ours by more than five minutes"
	}
	if e.Rcode != dns.RcodeSuccess {
		text := "answered " + RcodeName(e.Rcode) + rcodeHint(e.Rcode)
		if e.Err != nil {
			text += " (" + e.Err.Error() + ")"
		}
		return text
	}
	return describeCause(e.Err)
}

// RefusesKey reports whether the server refused the key or its signature (RFC 8945 section 5.2): with a TSIG error or, as PowerDNS does,
// with a NOTAUTH that has no TSIG record, which may also be about the time. A server that does not have a zone says so in a signed reply.
func (e *Error) RefusesKey() bool {
	return e.TSIGError != 0 && e.TSIGError != dns.RcodeBadTime || e.Rcode == dns.RcodeNotAuth && errors.Is(e.Err, ErrUnsigned)
}

// MayConcernKey reports whether an error may be due to a key that is not the server's any more: some servers just refuse what they cannot
// verify.
func MayConcernKey(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.TSIGError != 0 || e.Rcode == dns.RcodeNotAuth || e.Rcode == dns.RcodeRefused)
}

// Transient reports whether the same request may succeed later without a change of specification or Secret: after a time-out, a failed
// connection, SERVFAIL, with a zone that is not loaded (yet), or with a clock that is off. A refusal by policy, an unknown key, a wrong
// secret, a transfer beyond a limit and a request that cannot be built are terminal.
func (e *Error) Transient() bool {
	if e.TSIGError != 0 || e.RefusesKey() {
		return e.TSIGError == dns.RcodeBadTime
	}
	switch e.Rcode {
	case dns.RcodeSuccess:
		return !errors.Is(e.Err, ErrUnsigned) && !errors.Is(e.Err, ErrSignature) && !errors.Is(e.Err, ErrTooLarge) && !errors.Is(e.Err, ErrUnsendable)
	case dns.RcodeServerFailure, dns.RcodeNotAuth, dns.RcodeNXRrset:
		return true
	}
	return false
}

// Reason is the failure as one CamelCase word for a condition's reason.
func (e *Error) Reason() string {
	switch e.TSIGError {
	case 0:
	case dns.RcodeBadKey:
		return "BadKey"
	case dns.RcodeBadTime:
		return "BadTime"
	default:
		return "BadSignature"
	}
	if e.RefusesKey() {
		return "BadKey"
	}
	if r, ok := rcodeReasons[e.Rcode]; ok {
		return r
	}
	switch {
	case e.Rcode != dns.RcodeSuccess:
		return "UnexpectedRcode"
	case errors.Is(e.Err, ErrUnsigned), errors.Is(e.Err, ErrSignature):
		return "BadSignature"
	case errors.Is(e.Err, ErrClock):
		return "BadTime"
	case errors.Is(e.Err, ErrTooLarge):
		return "TooLarge"
	case errors.Is(e.Err, ErrReply):
		return "BadReply"
	case errors.Is(e.Err, ErrUnsendable):
		return "Unsendable"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "ConnectionRefused"
	case isTimeout(e.Err):
		return "Timeout"
	}
	return "Unreachable"
}

var rcodeReasons = map[int]string{
	dns.RcodeFormatError:    "FormErr",
	dns.RcodeServerFailure:  "ServFail",
	dns.RcodeNameError:      "NXDomain",
	dns.RcodeNotImplemented: "NotImplemented",
	dns.RcodeRefused:        "Refused",
	dns.RcodeNXRrset:        "Conflict",
	dns.RcodeNotAuth:        "NotLoaded",
	dns.RcodeNotZone:        "NotZone",
}

// RcodeName is the mnemonic of a response code, such as NXDOMAIN, or the form RCODE17.
func RcodeName(rcode int) string {
	if s, ok := dns.RcodeToString[rcode]; ok {
		return s
	}
	return fmt.Sprintf("RCODE%d", rcode)
}

func rcodeHint(rcode int) string {
	switch rcode {
	case dns.RcodeNotAuth:
		return ": the server does not host the zone or has not loaded it"
	case dns.RcodeNotZone:
		return ": a name lies outside the zone"
	}
	return ""
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// describeCause says why there was no usable reply.
func describeCause(err error) string {
	switch {
	case err == nil:
		return "failed"
	case outbound.IsLimit(err):
		return err.Error()
	case errors.Is(err, context.Canceled):
		return "canceled"
	case isTimeout(err):
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the server"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server closed the connection"
	}
	return err.Error()
}
