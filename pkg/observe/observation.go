package observe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// NoReply is an Observation's Rcode when the server did not answer.
const NoReply = -1

// Observation is what one server answered about one zone, once.
type Observation struct {
	Server netip.AddrPort
	// At is when the question was sent: what is told here was true at that time or later.
	At time.Time
	// RTT is the time from question to answer; 0 when there was none.
	RTT time.Duration
	// Rcode of the answer to the SOA question; NoReply when there was none.
	Rcode int
	// AA is true when the answer had the AA bit. A server that serves a parent zone has it, too.
	AA bool
	// Authoritative is true when the answer had the AA bit and the zone's SOA in it: the server serves the zone.
	Authoritative bool
	// Serial and SOA are those served; zero unless Authoritative.
	Serial uint32
	SOA    rrset.SOA
	// ExpiresIn is in what time the server gives the zone up if it reaches no primary before (RFC 7314); 0 when it did not
	// tell.
	ExpiresIn time.Duration
	// Mirror is the zone's content at Serial; nil when the zone is not served, could not be transferred (Err), or was
	// not asked for (Serial).
	Mirror *Mirror
	// Err is a *wire.Error or a context's error: the server did not answer, or not to a transfer. It is nil when the
	// server answered, whatever its answer: see Reason. Its text is fit for users.
	Err error
}

// Reasons why an observation shows no content.
const (
	// ReasonUnreachable: no answer to the SOA question.
	ReasonUnreachable = "Unreachable"
	// ReasonRefused: the server answers REFUSED. BIND does so for zones it was not told to serve.
	ReasonRefused = "Refused"
	// ReasonNotLoaded: SERVFAIL, NXDOMAIN, NOTAUTH or another error. BIND answers SERVFAIL when a zone is known but not
	// loaded, expired or not yet transferred.
	ReasonNotLoaded = "NotLoaded"
	// ReasonLame: the server answers without authority, for instance with a referral.
	ReasonLame = "Lame"
	// ReasonTransferFailed: the server serves the zone, but its content could not be fetched.
	ReasonTransferFailed = "TransferFailed"
)

// Reason is one of the constants above, or empty when the zone is served and nothing failed.
func (o Observation) Reason() string {
	switch {
	case o.Rcode == NoReply:
		return ReasonUnreachable
	case o.Rcode == dns.RcodeRefused:
		return ReasonRefused
	case o.Rcode != dns.RcodeSuccess:
		return ReasonNotLoaded
	case !o.Authoritative:
		return ReasonLame
	case o.Err != nil:
		return ReasonTransferFailed
	}
	return ""
}

// Message explains Reason to a person, without naming the server; it is empty when there is no reason.
func (o Observation) Message() string {
	switch o.Reason() {
	case ReasonRefused:
		return "the server refuses to answer for the zone: it does not serve it"
	case ReasonNotLoaded:
		return fmt.Sprintf("the server answers %s: the zone is not loaded", dns.RcodeToString[o.Rcode])
	case ReasonLame:
		return "the server is not authoritative for the zone: it does not serve it"
	case ReasonTransferFailed:
		return "the zone's content could not be transferred: " + detail(o.Err)
	case ReasonUnreachable:
		return detail(o.Err)
	}
	return ""
}

func detail(err error) string {
	var e *wire.Error
	if errors.As(err, &e) {
		return e.Detail()
	}
	if err == nil {
		return "no answer"
	}
	return err.Error()
}

// observed turns the outcome of an SOA question into an observation without content.
func observed(server netip.AddrPort, at time.Time, zone string, reply wire.Reply, err error) Observation {
	o := Observation{Server: server, At: at, RTT: reply.RTT, Rcode: NoReply, Err: err}
	if err != nil {
		return o
	}
	o.Rcode, o.AA = reply.Msg.Rcode, reply.Msg.Authoritative
	if o.Rcode != dns.RcodeSuccess || !o.AA {
		return o
	}
	for _, rr := range reply.Msg.Answer {
		if soa, ok := rr.(*dns.SOA); ok && dns.CanonicalName(soa.Hdr.Name) == zone {
			o.Authoritative, o.SOA, o.Serial = true, wire.FromSOA(soa), soa.Serial
			o.ExpiresIn = wire.Expire(reply.Msg)
		}
	}
	return o
}
