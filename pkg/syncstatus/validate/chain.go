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

// Source says what vouches for the keys of a zone.
type Source string

// The values of Source.
const (
	// TrustAnchor: a configured trust anchor of the zone.
	TrustAnchor Source = "TrustAnchor"
	// ParentDS: the DS records of the parent zone, which is served here.
	ParentDS Source = "ParentDS"
	// OwnKeys: nothing outside of the zone is known that vouches for its keys. They are trusted as they are.
	OwnKeys Source = "OwnKeys"
)

// Chain is what vouches for the keys of a zone.
type Chain struct {
	Zone   string
	Source Source
	// Anchors are DS or DNSKEY records that vouch for the zone's keys; none if the zone is Insecure.
	Anchors []dns.RR
	// Parent is what the chain goes on with above; nil if it ends here.
	Parent *Result
	// Delegation is the verdict about the DS records of the parent. It is Secure with other sources.
	Delegation dnssec.Verdict
	// Gap says what of the chain could not be reached; empty if it goes up to a trust anchor.
	Gap string
}

// IsKnown reports whether something outside of the zone says how resolvers take its answers.
func (c *Chain) IsKnown() bool {
	return c.Source != OwnKeys || c.Delegation.Security == dnssec.Unknown
}

// IsSigned reports whether resolvers expect signatures of the zone, or may do so, as the DS records of its parent are not known now.
func (c *Chain) IsSigned() bool {
	return len(c.Anchors) > 0 || c.Delegation.Security == dnssec.Bogus || c.Delegation.Security == dnssec.Unknown
}

// says reports whether two chains vouch for the same keys.
func (c *Chain) says(o *Chain) bool {
	return c == o || c != nil && o != nil && c.Source == o.Source && c.Delegation.Security == o.Delegation.Security &&
		slices.EqualFunc(withoutSignatures(c.Anchors), withoutSignatures(o.Anchors), dns.IsDuplicate)
}

func withoutSignatures(records []dns.RR) (out []dns.RR) {
	for _, rr := range records {
		if rr.Header().Rrtype != dns.TypeRRSIG {
			out = append(out, rr)
		}
	}
	return out
}

// chain finds what vouches for a zone. own are the keys of its newest content.
func (v *Validator) chain(z Zone, own []dns.RR, clock dnssec.Clock) *Chain {
	zone, parent := z.Name, z.Parent
	c := &Chain{Zone: zone, Delegation: dnssec.Verdict{Security: dnssec.Secure}}
	anchors := *v.anchors()
	if c.Anchors = anchors[zone]; len(c.Anchors) > 0 {
		c.Source = TrustAnchor
		return c
	}
	if parent != nil && c.followParent(parent, own, clock) {
		return c
	}
	if c.Source, c.Anchors = OwnKeys, own; z.Doubt != "" && len(own) > 0 {
		c.Delegation = unknown(z.Doubt)
	}
	if c.Gap == "" {
		c.Gap = fmt.Sprintf("no trust anchor and no parent zone of %s is known here", zone)
		for name := range rrset.NamesUpFrom(rrset.ParentName(zone)) {
			if len(anchors[name]) > 0 {
				c.Gap = fmt.Sprintf("the trust anchor of %s does not reach %s: no parent zone of it is served here", name, zone)
				break
			}
		}
	}
	return c
}

// followParent takes what the parent zone says. It is false if the parent says nothing about the zone. While its servers do not answer,
// what they said before is no evidence, and the zone's own keys are none either.
func (c *Chain) followParent(parent *Result, own []dns.RR, clock dnssec.Clock) bool {
	above := parent.best
	if above == nil || above.content == nil {
		c.Gap = fmt.Sprintf("the content of the parent zone %s is not known", parent.Name)
		return parent.unread && (parent.hadKeys || len(own) > 0) && c.doubt(own)
	}
	ds := signedSet(above.content, rrset.Key{Name: c.Zone, Type: dns.TypeDS})
	_, delegated := above.content.Get(rrset.Key{Name: c.Zone, Type: dns.TypeNS})
	security := above.ofKeys.Security
	switch {
	case !delegated && len(ds) == 0:
		c.Gap = fmt.Sprintf("the parent zone %s does not delegate to %s", parent.Name, c.Zone)
		return false
	case security == dnssec.Unknown:
		c.Gap = fmt.Sprintf("the parent zone %s could not be validated: %s", parent.Name, above.ofKeys.Detail)
		return above.Chain.Delegation.Security == dnssec.Unknown && len(ds)+len(own) > 0 && c.doubt(own)
	}
	c.Source, c.Parent, c.Gap = ParentDS, parent, above.Chain.Gap
	switch {
	case security == dnssec.Bogus:
		c.Delegation = above.ofKeys
		c.Delegation.Detail = fmt.Sprintf("the parent zone %s is Bogus: %s", parent.Name, above.ofKeys.Detail)
	case security == dnssec.Insecure:
		c.Delegation = dnssec.Verdict{Security: dnssec.Insecure, Detail: fmt.Sprintf("the parent zone %s is not signed, or nothing vouches for it", parent.Name)}
	case len(ds) == 0:
		c.Delegation = dnssec.Verdict{Security: dnssec.Insecure, Detail: fmt.Sprintf("the parent zone %s has no DS record for %s", parent.Name, c.Zone)}
	default:
		c.Delegation = above.keys.Judge(reply(c.Zone, dns.TypeDS, ds), clock)
		c.Anchors = ds
	}
	if c.Delegation.Security == dnssec.Insecure || c.Delegation.Security == dnssec.Bogus {
		c.Anchors = nil
	}
	return true
}

// doubt takes that a zone above has DS records which are not known now. It is true.
func (c *Chain) doubt(own []dns.RR) bool {
	c.Source, c.Anchors, c.Delegation = ParentDS, own, unknown(c.Gap)
	return true
}

// reply makes the answer to a question from records.
func reply(name string, rrtype uint16, answer []dns.RR) *dns.Msg {
	return &dns.Msg{
		MsgHdr:   dns.MsgHdr{Response: true, Authoritative: true},
		Question: []dns.Question{{Name: name, Qtype: rrtype, Qclass: dns.ClassINET}},
		Answer:   answer,
	}
}

// maxSet bounds the records of an RRset, and its signatures, that are taken from a zone. What is beyond counts as absent.
const maxSet = 128

// signedSet takes an RRset and its signatures from a zone's content.
func signedSet(m *observe.Mirror, k rrset.Key) (all []dns.RR) {
	s, _ := m.Get(k)
	all = appendRecords(all, s)
	return appendSignatures(all, m, k)
}

func appendRecords(all []dns.RR, s rrset.RRset) []dns.RR {
	for _, rdata := range s.Rdata[:min(len(s.Rdata), maxSet)] {
		if rr, err := rrset.ToRR(s.Key, s.TTL, rdata); err == nil {
			all = append(all, rr)
		}
	}
	return all
}

func appendSignatures(all []dns.RR, m *observe.Mirror, k rrset.Key) []dns.RR {
	n := 0
	for s := range signaturesOf(m, k) {
		if rr, err := rrset.ToRR(rrset.Key{Name: k.Name, Type: dns.TypeRRSIG}, 0, s.rdata); err == nil && n < maxSet {
			all = append(all, rr)
			n++
		}
	}
	return all
}

// keysOf takes the DNSKEY records among some.
func keysOf(records []dns.RR) (keys []dns.RR) {
	for _, rr := range records {
		if _, ok := rr.(*dns.DNSKEY); ok {
			keys = append(keys, rr)
		}
	}
	return keys
}

// worst combines verdicts: the most serious one, the first expiry, all key tags.
func worst(verdicts ...dnssec.Verdict) dnssec.Verdict {
	var out dnssec.Verdict
	for _, v := range verdicts {
		expires, tags := firstTime(out.Expires, v.Expires), mergeTags(out.KeyTags, v.KeyTags)
		if rank[v.Security] > rank[out.Security] {
			out = v
		}
		out.Expires, out.KeyTags = expires, tags
	}
	return out
}

// rank orders verdicts, the most serious last.
var rank = map[dnssec.Security]int{dnssec.Secure: 1, dnssec.Expiring: 2, dnssec.Insecure: 3, dnssec.Unknown: 4, dnssec.Bogus: 5}

func firstTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
