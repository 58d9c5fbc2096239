package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// limits are the times that those of signatures are compared with, as text.
type limits struct{ now, notice string }

func limitsOf(c dnssec.Clock) limits { return limits{timeText(c.Now), timeText(c.Now.Add(c.Notice))} }

// check judges RRsets of a server's content by whether they have a signature with a key of the zone that has not expired, and by the keys.
// Of all RRsets only the SOA is verified. Names that the content does not have are left out.
func (a *Apex) check(keys []rrset.Key, at limits) dnssec.Verdict {
	if a.keys == nil || a.content == nil || a.ofKeys.Security != dnssec.Secure && a.ofKeys.Security != dnssec.Expiring {
		return a.ofKeys
	}
	verdict := a.ofKeys
	for _, k := range keys {
		switch {
		case k.Type == dns.TypeSOA:
			verdict = worst(verdict, a.Verdict)
		case holds(a.content, k) && !a.isDelegated(k):
			verdict = worst(verdict, a.soften(a.checkSet(k, at)))
		}
	}
	return verdict
}

func (a *Apex) checkSet(k rrset.Key, at limits) dnssec.Verdict {
	var last signature
	signed := false
	for s := range signaturesOf(a.content, k) {
		if signed = true; s.expires > last.expires && slices.Contains(a.tags, s.tag) {
			last = s
		}
	}
	switch {
	case !signed:
		return bogus(dns.ExtendedErrorCodeRRSIGsMissing, "%s has no signature", k)
	case last.expires == "":
		return bogus(dns.ExtendedErrorCodeDNSKEYMissing, "%s is signed with keys that %s does not have", k, a.Chain.Zone)
	case last.begins > at.now:
		return bogus(dns.ExtendedErrorCodeSignatureNotYetValid, "the signature of %s becomes valid %s", k, parseTime(last.begins).Format(time.RFC3339))
	}
	v := expiring{k, last.expires}.verdict(at)
	v.KeyTags = []uint16{tagOf(last.tag)}
	return v
}

func bogus(code uint16, format string, args ...any) dnssec.Verdict {
	return dnssec.Verdict{Security: dnssec.Bogus, Code: code, Detail: fmt.Sprintf(format, args...)}
}

func tagOf(text string) (tag uint16) {
	for _, digit := range text {
		tag = tag*10 + uint16(digit-'0') //nolint:gosec // the text of a key tag
	}
	return tag
}

// isDelegated is true for data that the zone does not sign: at a delegation all but DS, and all that is below one.
func (a *Apex) isDelegated(k rrset.Key) bool {
	for name := range rrset.NamesBelow(a.Chain.Zone, k.Name) {
		if holds(a.content, rrset.Key{Name: name, Type: dns.TypeNS}) && (name != k.Name || k.Type != dns.TypeDS) {
			return true
		}
	}
	return false
}

// checkAll is check for all signatures of a zone on a server, without a look at their keys.
func (v *Validator) checkAll(a *Apex, server observe.Peer, now time.Time, at limits) dnssec.Verdict {
	if a.keys == nil || a.content == nil || a.Verdict.Security != dnssec.Secure && a.Verdict.Security != dnssec.Expiring {
		return a.Verdict
	}
	key := scanKey{a.Chain.Zone, server}
	v.mu.Lock()
	was := v.scans[key]
	v.mu.Unlock()
	var last scan
	if was != nil {
		last = was.scan
	}
	is := last.of(a.content)
	v.mu.Lock()
	v.scans[key] = &remembered{is, now}
	v.mu.Unlock()
	return worst(a.Verdict, a.soften(is.first.verdict(at)))
}

// Judge judges an answer of the server to a question with the DO bit. keys is its answer to a question about the DNSKEY records; nil to
// use those known. The cuts are delegations that may be in the zone, besides those in the server's content.
func (a *Apex) Judge(m, keys *dns.Msg, clock dnssec.Clock, cuts ...string) dnssec.Verdict {
	now := *a
	now.tags = nil
	if keys != nil {
		now.setKeys(keys.Answer, clock)
	} else {
		now.setKeys(a.Keys, clock)
	}
	if now.keys == nil || now.Verdict.Security == dnssec.Bogus || now.Verdict.Security == dnssec.Unknown {
		return now.Verdict
	}
	verdict := now.keys.Judge(m, clock, append(cuts, now.cutsIn(m)...)...)
	if verdict.Security == dnssec.Unknown {
		return verdict
	}
	return now.soften(worst(now.Verdict, verdict))
}

// cutsIn are the delegations in the server's content at or above the names in an answer.
func (a *Apex) cutsIn(m *dns.Msg) []string {
	if a.content == nil {
		return nil
	}
	return dnssec.CutsIn(m, a.Chain.Zone, func(name string) bool { return holds(a.content, rrset.Key{Name: name, Type: dns.TypeNS}) })
}
