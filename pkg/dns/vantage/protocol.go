package vantage

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"syscall"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const (
	// askPath is where a Server takes a request by POST.
	askPath = "/v1/ask"
	// maxQuestions bounds those in a request.
	maxQuestions = 256
	// maxRequest and maxResponse bound the bodies, in bytes.
	maxRequest, maxResponse = 64 << 10, 512 << 10
	// maxHeader bounds what comes before the body of a response, in bytes.
	maxHeader = 16 << 10
)

// Question is an address, and whether it is asked over TCP.
type Question struct {
	Address netip.AddrPort `json:"address"`
	TCP     bool           `json:"tcp,omitempty"`
}

// request asks some addresses for the SOA of a zone, which is a canonical name.
type request struct {
	Zone      string     `json:"zone"`
	Questions []Question `json:"questions"`
}

// response has the answers in the order of the questions.
type response struct {
	Answers []answer `json:"answers"`
}

// answer is an observe.Observation as it is sent.
type answer struct {
	// Failure is why there was no answer; empty if there was one.
	Failure failure `json:"failure,omitempty"`
	Rcode   int     `json:"rcode,omitempty"`
	// AA is the bit of the answer; SOA is nil unless the answer has the zone's SOA with authority.
	AA  bool       `json:"aa,omitempty"`
	SOA *rrset.SOA `json:"soa,omitempty"`
	// ServerID is what the server calls itself.
	ServerID string `json:"serverID,omitempty"`
	// Microseconds is the time from query to answer.
	Microseconds int64 `json:"microseconds,omitempty"`
}

// failure is why an address did not answer.
type failure string

const (
	failureTimeout   failure = "timeout"
	failureRefused   failure = "refused"
	failureNoRoute   failure = "noRoute"
	failureClosed    failure = "closed"
	failureForbidden failure = "forbidden" // by the address
	failurePort      failure = "port"
	failureLimit     failure = "limit"
	failureOther     failure = "other"
)

// Errors of questions that were not asked.
var (
	// ErrUnavailable: the vantage did not answer.
	ErrUnavailable = errors.New("the vantage does not answer: it cannot be reached, or its certificate or ours is not accepted")
	errPort        = errors.New("the vantage does not ask at this port: --ports")
	errLimit       = errors.New("the vantage has been asked too much in this second")
	errOther       = errors.New("no answer that could be read")
)

// IsNotAsked reports whether an error says that the vantage has not asked.
func IsNotAsked(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, errPort) || errors.Is(err, errLimit)
}

// failures are the errors that stand for each failure: the client's text for it, and what the server recognizes.
var failures = []struct {
	failure
	err error
}{
	{failureForbidden, outbound.ErrForbidden},
	{failurePort, errPort},
	{failureLimit, errLimit},
	{failureLimit, outbound.ErrOwnLimit},
	{failureLimit, outbound.ErrLimit},
	{failureRefused, syscall.ECONNREFUSED},
	{failureNoRoute, syscall.EHOSTUNREACH},
	{failureNoRoute, syscall.ENETUNREACH},
	{failureClosed, io.EOF},
	{failureClosed, syscall.ECONNRESET},
	{failureTimeout, context.DeadlineExceeded},
}

func failureOf(err error) failure {
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.failure
		}
	}
	if timeout := interface{ Timeout() bool }(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return failureTimeout
	}
	return failureOther
}

func (f failure) err() error {
	for _, known := range failures {
		if known.failure == f {
			return known.err
		}
	}
	return errOther
}

func newAnswer(o observe.Observation) answer {
	if o.Rcode == observe.NoReply {
		return answer{Failure: failureOf(o.Err)}
	}
	a := answer{Rcode: o.Rcode, AA: o.AA, ServerID: o.ServerID, Microseconds: o.RTT.Microseconds()}
	if o.Authoritative {
		a.SOA = &o.SOA
	}
	return a
}
