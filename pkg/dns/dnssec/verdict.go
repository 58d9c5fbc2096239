package dnssec

import (
	"fmt"
	"time"

	"github.com/miekg/dns"
)

// Security is what a validating resolver makes of an answer (RFC 4033 section 5).
type Security string

// The values of Security.
const (
	// Secure: accepted, and proven.
	Secure Security = "Secure"
	// Expiring: Secure, but not for longer than Clock.Notice.
	Expiring Security = "Expiring"
	// Insecure: accepted, but not proven. The zone has no DS record, none that is supported, or a proof that proves too little, as
	// with opt-out.
	Insecure Security = "Insecure"
	// Bogus: not accepted. Clients get SERVFAIL.
	Bogus Security = "Bogus"
	// Unknown: the message is no answer that these keys could prove.
	Unknown Security = "Unknown"
)

// Verdict is what a validating resolver makes of an answer.
type Verdict struct {
	Security Security
	// Code is the cause as an INFO-CODE of RFC 8914, such as dns.ExtendedErrorCodeSignatureExpired. It has a meaning if the answer is
	// Bogus. Of an Insecure one, 0 means that RFC 8914 has no code for the cause.
	Code uint16
	// Detail says what is Bogus, Insecure or Unknown and why; empty for what is Secure.
	Detail string
	// Expires is when the first of the signatures expires on which the verdict rests, those of the DNSKEY RRset included. Of several
	// valid signatures of an RRset, the last one counts. Zero if there was none.
	Expires time.Time
	// KeyTags are the tags of the keys of the accepted signatures, in ascending order, each once. Judge leaves out those of the DNSKEY
	// RRset, which the verdict of Trust has.
	KeyTags []uint16
}

// Cause is the cause in the words of RFC 8914, such as "Signature Expired"; empty if RFC 8914 has none.
func (v Verdict) Cause() string {
	if v.Security != Bogus && v.Code == dns.ExtendedErrorCodeOther {
		return ""
	}
	return dns.ExtendedErrorCodeToString[v.Code]
}

// Clock is when something is judged.
type Clock struct {
	Now time.Time
	// Notice is how long before a signature expires the verdict becomes Expiring.
	Notice time.Duration
}

// finding is why an answer is not Secure.
type finding struct {
	security Security
	code     uint16
	detail   string
}

func (f *finding) Error() string { return f.detail }

func bogus(code uint16, format string, args ...any) *finding {
	return &finding{Bogus, code, fmt.Sprintf(format, args...)}
}

func insecure(code uint16, format string, args ...any) *finding {
	return &finding{Insecure, code, fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) *finding {
	return &finding{Unknown, dns.ExtendedErrorCodeOther, fmt.Sprintf(format, args...)}
}

// conclude makes the verdict of a finding, or of none. A finding that is not Bogus rests on signatures, too.
func (v *verifier) conclude(f *finding) Verdict {
	verdict := Verdict{Security: Secure, Expires: v.expires, KeyTags: v.sortedTags()}
	switch {
	case f != nil:
		verdict.Security, verdict.Code, verdict.Detail = f.security, f.code, f.detail
	case v.expires.Sub(v.clock.Now) < v.clock.Notice:
		verdict.Security = Expiring
	}
	return verdict
}
