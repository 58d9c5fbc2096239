package observe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// NoReply is an Observation's Rcode if the server did not answer.
const NoReply = -1

// Observation is what one server answered about one zone, once.
type Observation struct {
	Server netip.AddrPort
	// At is when the query was sent: the observation was true at that time or later.
	At time.Time
	// RTT is the time from query to answer; 0 if there was none.
	RTT time.Duration
	// Rcode of the answer to the SOA query; NoReply if there was none.
	Rcode int
	// AA is true if the answer had the AA bit. A server of a parent zone sets it, too.
	AA bool
	// Authoritative is true if the answer had the AA bit and the zone's SOA: the server serves the zone.
	Authoritative bool
	// Unverified is true if the server did not sign its answer although it was asked with a key, or refused the key: then the
	// answer says what the server seems to serve, and is no evidence that it does. If Authoritative, Err has the reason.
	Unverified bool
	// Serial and SOA are those served; zero unless Authoritative.
	Serial uint32
	SOA    rrset.SOA
	// ServerID is what the server calls itself, if a client asked (AskAsClient) and the server says.
	ServerID string
	// ExpiresIn is how long the server will go on to serve the zone if it reaches no primary (RFC 7314); 0 if unknown.
	ExpiresIn time.Duration
	// Mirror is the zone's content at Serial; nil if the zone is not served, could not be transferred (Err), or was not
	// asked for (Serial).
	Mirror *Mirror
	// Answers are what the server is known to answer in place of what its zone holds, as far as somebody has asked it; see
	// Ask. An Observer leaves them to its callers.
	Answers map[rrset.Key]Answer
	// Err is a *wire.Error or a context's error: the server did not answer, its answer is Unverified, or the transfer failed.
	// It is nil if the server answered, whatever its answer: see Reason. Its text may be shown to users.
	Err error
}

// Reasons why an observation has no content.
const (
	// ReasonUnreachable: no answer to the SOA query.
	ReasonUnreachable = "Unreachable"
	// ReasonRefused: the server answers REFUSED, as BIND does for zones that are not configured.
	ReasonRefused = "Refused"
	// ReasonNotLoaded: SERVFAIL, NXDOMAIN, NOTAUTH or another error. BIND answers SERVFAIL if a zone is configured but not
	// loaded, expired or not yet transferred.
	ReasonNotLoaded = "NotLoaded"
	// ReasonLame: the server answers without authority, for instance with a referral.
	ReasonLame = "Lame"
	// ReasonTransferFailed: the server serves the zone, but its content could not be fetched.
	ReasonTransferFailed = "TransferFailed"
)

// Reason is one of the constants above, or "" if the zone is served and nothing failed.
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

// Message explains Reason to a person, without naming the server; it is empty if there is no reason.
func (o Observation) Message() string {
	switch o.Reason() {
	case ReasonRefused:
		return "the server refuses to answer for the zone: it does not have it, or does not admit the question"
	case ReasonNotLoaded:
		return fmt.Sprintf("the server answers %s: the zone is not loaded", dns.RcodeToString[o.Rcode])
	case ReasonLame:
		return "the server is not authoritative for the zone: it does not serve it"
	case ReasonTransferFailed:
		return "the zone's content could not be transferred: " + errorDetail(o.Err)
	case ReasonUnreachable:
		return errorDetail(o.Err)
	}
	return ""
}

func errorDetail(err error) string {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e.Detail()
	}
	if err == nil {
		return "no answer"
	}
	return err.Error()
}

// observationFromReply turns the outcome of an SOA query into an observation without content.
func observationFromReply(server netip.AddrPort, at time.Time, zone string, reply wire.Reply, err error) Observation {
	o := Observation{Server: server, At: at, RTT: reply.RTT, Rcode: NoReply, Err: err}
	if err != nil {
		return o
	}
	o.Rcode, o.AA, o.ServerID = reply.Msg.Rcode, reply.Msg.Authoritative, wire.NSID(reply.Msg)
	if o.Rcode != dns.RcodeSuccess || !o.AA {
		return o
	}
	for _, rr := range reply.Msg.Answer {
		if soa, ok := rr.(*dns.SOA); ok && dns.CanonicalName(soa.Hdr.Name) == zone {
			o.Authoritative, o.SOA, o.Serial = true, rrset.FromSOA(soa), soa.Serial
			o.ExpiresIn = wire.Expire(reply.Msg)
		}
	}
	return o
}
