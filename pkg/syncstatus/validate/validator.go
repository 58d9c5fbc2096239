package validate

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Zone is what is known of a zone at one moment.
type Zone struct {
	Name    string
	Servers []Server
	// Parent is the zone above it that is served here; nil if there is none.
	Parent *Result
	// Doubt says why resolvers may trust other keys than those that the zone has, if neither a trust anchor nor Parent vouches for these.
	Doubt string
}

// Server is what one server has of the zone.
type Server struct {
	Peer observe.Peer
	// Line groups the servers that have the same serials, and so the same keys.
	Line    string
	Primary bool
	Serial  uint32
	// Content is the zone's; nil if it is not known, as that of a server that is read by query.
	Content *observe.Mirror
	// Keys is its answer to a question about the zone's DNSKEY records, if its content does not show them; nil if there was none.
	Keys *dns.Msg
	// Unread is true if its content is read by transfer and is not known, as the server has not answered, or not with the zone.
	Unread bool
}

// Result is the judgement of a zone. It does not change.
type Result struct {
	Name string
	// Servers are in the order of those of the Zone.
	Servers []*Apex
	// best is that by which zones below this one are judged; nil if nothing is known of any.
	best *Apex
	// unread is true if no content is known, and that of some server should be. hadKeys is whether the zone had keys when content was
	// last known.
	unread, hadKeys bool
	// until is when it has to be made anew although nothing has changed.
	until time.Time
	clock dnssec.Clock
}

// IsSigned reports whether resolvers expect signatures of the zone, or may do so, as one of its servers has keys.
func (r *Result) IsSigned() bool {
	return r != nil && slices.ContainsFunc(r.Servers, func(a *Apex) bool { return a.Chain.IsSigned() })
}

// Apex is the judgement of what one server has at the apex of a zone.
type Apex struct {
	Chain *Chain
	// Verdict is about the keys and the SOA. It is Unknown if the server's keys are not known.
	Verdict dnssec.Verdict
	// ofKeys is about the keys alone: what does not depend on the SOA depends on it.
	ofKeys dnssec.Verdict
	// Keys are the zone's on this server, with their signatures.
	Keys []dns.RR

	keys    *dnssec.Keys // nil if the zone is not signed, or the keys are not known
	content *observe.Mirror
	tags    []string
	signing bool
	// behind is true if the server has another serial than the newest content of its line.
	behind bool
}

// bogusAge and otherAge are how long a result is good while nothing changes and no signature expires. A Bogus one can be about a
// signature that becomes valid.
const (
	bogusAge = 2 * time.Second
	otherAge = 5 * time.Minute
)

// idleAge is how long a result is remembered that nobody asks for.
const idleAge = 10 * time.Minute

// Validator judges zones. It is safe for concurrent use.
type Validator struct {
	anchors func() *Anchors
	notice  time.Duration

	mu    sync.Mutex
	zones map[zoneKey]*memory
	scans map[scanKey]*remembered
	swept time.Time
}

// zoneKey names a zone by the servers that it is judged on: two DNSZones can have one name.
type zoneKey struct {
	name  string
	first observe.Peer
}

type scanKey struct {
	zone   string
	server observe.Peer
}

type remembered struct {
	scan
	used time.Time
}

// memory is the last result and what it was made from.
type memory struct {
	zone    Zone
	anchors *Anchors
	result  *Result
	used    time.Time
}

// NewValidator returns a Validator that calls a verdict Expiring for some time before a signature expires.
func NewValidator(anchors func() *Anchors, notice time.Duration) *Validator {
	return &Validator{anchors: anchors, notice: notice, zones: map[zoneKey]*memory{}, scans: map[scanKey]*remembered{}}
}

// Clock is how verdicts at a time are made.
func (v *Validator) Clock(now time.Time) dnssec.Clock {
	return dnssec.Clock{Now: now, Notice: v.notice}
}

// Zone judges a zone.
func (v *Validator) Zone(z Zone, now time.Time) *Result {
	key, anchors := zoneKey{name: z.Name}, v.anchors()
	if len(z.Servers) > 0 {
		key.first = z.Servers[0].Peer
	}
	v.mu.Lock()
	v.sweep(now)
	last := v.zones[key]
	if last != nil {
		last.used = now
	}
	v.mu.Unlock()
	if last != nil && last.anchors == anchors && now.Before(last.result.until) && last.zone.Parent == z.Parent && last.zone.Doubt == z.Doubt && slices.Equal(last.zone.Servers, z.Servers) {
		return last.result
	}
	r := v.judge(z, v.Clock(now))
	switch {
	case r.best != nil && r.best.content != nil:
		r.hadKeys = len(r.best.tags) > 0
	case last != nil:
		r.hadKeys = last.result.hadKeys
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.zones[key] = &memory{z, anchors, r, now}
	return r
}

// sweep forgets what nobody asks for. v.mu is held.
func (v *Validator) sweep(now time.Time) {
	if now.Sub(v.swept) < time.Minute {
		return
	}
	v.swept = now
	for key, m := range v.zones {
		if now.Sub(m.used) > idleAge {
			delete(v.zones, key)
		}
	}
	for key, s := range v.scans {
		if now.Sub(s.used) > idleAge {
			delete(v.scans, key)
		}
	}
}

// judge makes a result. Servers with the same content share a judgement.
func (v *Validator) judge(z Zone, clock dnssec.Clock) *Result {
	r := &Result{Name: z.Name, Servers: make([]*Apex, len(z.Servers)), until: clock.Now.Add(otherAge), clock: clock}
	lines := map[string]*line{}
	for _, s := range z.Servers {
		if lines[s.Line] == nil {
			lines[s.Line] = v.line(z, s.Line, clock)
		}
	}
	for i, s := range z.Servers {
		l := lines[s.Line]
		r.Servers[i] = l.apexOf(z.Name, s, clock)
		r.limit(r.Servers[i].Verdict)
		r.unread = r.unread || s.Unread
		if l.isBest(s) && (r.best == nil || s.Line == "") {
			r.best = r.Servers[i]
		}
	}
	r.unread = r.unread && (r.best == nil || r.best.content == nil)
	return r
}

// limit has the result made anew when a verdict changes by itself.
func (r *Result) limit(v dnssec.Verdict) {
	if v.Security == dnssec.Bogus {
		r.until = firstTime(r.until, r.clock.Now.Add(bogusAge))
	}
	for _, at := range []time.Time{v.Expires, v.Expires.Add(-r.clock.Notice)} {
		if !v.Expires.IsZero() && at.After(r.clock.Now) {
			r.until = firstTime(r.until, at.Add(time.Second))
		}
	}
}

// line is servers that have the same serials.
type line struct {
	chain *Chain
	// best is the server with the newest content, a primary if one has content.
	best  *Server
	known []*known
}

// known is an apex and what it was made from.
type known struct {
	server Server
	apex   *Apex
}

func (v *Validator) line(z Zone, name string, clock dnssec.Clock) *line {
	l := new(line)
	for i, s := range z.Servers {
		if s.Line == name && s.isKnown() && (l.best == nil || s.Primary && !l.best.Primary ||
			s.Primary == l.best.Primary && rrset.SerialLess(l.best.Serial, s.Serial)) {
			l.best = &z.Servers[i]
		}
	}
	var own []dns.RR
	if l.best != nil {
		own = keysOf(l.best.keys(z.Name))
	}
	l.chain = v.chain(z, own, clock)
	return l
}

func (l *line) isBest(s Server) bool { return l.best != nil && *l.best == s }

func (s *Server) isKnown() bool { return s.Content != nil || s.Keys != nil }

// keys are the DNSKEY records with their signatures.
func (s *Server) keys(zone string) []dns.RR {
	switch {
	case s.Content != nil:
		return signedSet(s.Content, rrset.Key{Name: zone, Type: dns.TypeDNSKEY})
	case s.Keys != nil:
		return s.Keys.Answer
	}
	return nil
}

// apexOf judges a server.
func (l *line) apexOf(zone string, s Server, clock dnssec.Clock) *Apex {
	for _, k := range l.known {
		if k.isLike(zone, s) {
			a := *k.apex
			a.content = s.Content
			return &a
		}
	}
	a := &Apex{Chain: l.chain, content: s.Content}
	l.known = append(l.known, &known{s, a})
	if a.behind = l.best != nil && l.best.Serial != s.Serial; !s.isKnown() {
		a.Verdict = unknown("its keys are not known")
		a.ofKeys = a.Verdict
		return a
	}
	a.setKeys(s.keys(zone), clock)
	if a.keys == nil || a.content == nil {
		return a
	}
	if a.Verdict.Security == dnssec.Secure || a.Verdict.Security == dnssec.Expiring {
		a.Verdict = a.soften(worst(a.Verdict, a.keys.Judge(a.soa(), clock)))
	}
	return a
}

// isLike reports whether two servers have the same at the apex.
func (k *known) isLike(zone string, s Server) bool {
	if k.server.Content == s.Content && k.server.Keys == s.Keys && k.server.Serial == s.Serial {
		return true
	}
	a, b := k.server.Content, s.Content
	if a == nil || b == nil || a.SOA != b.SOA {
		return false
	}
	for _, rrtype := range []uint16{dns.TypeDNSKEY, dns.TypeRRSIG, typeSigning} {
		key := rrset.Key{Name: zone, Type: rrtype}
		one, _ := a.Get(key)
		other, _ := b.Get(key)
		if !slices.Equal(one.Rdata, other.Rdata) {
			return false
		}
	}
	return true
}

// setKeys judges the DNSKEY RRset with its signatures.
func (a *Apex) setKeys(keys []dns.RR, clock dnssec.Clock) {
	defer func() { a.ofKeys = a.Verdict }()
	a.Keys = keys
	for _, rr := range keysOf(keys) {
		if key, ok := rr.(*dns.DNSKEY); ok {
			a.tags = append(a.tags, strconv.Itoa(int(key.KeyTag())))
		}
	}
	switch d := a.Chain.Delegation; {
	case d.Security == dnssec.Bogus, d.Security == dnssec.Insecure, d.Security == dnssec.Unknown:
		a.Verdict = d
		return
	case len(a.Chain.Anchors) == 0:
		a.Verdict = dnssec.Verdict{Security: dnssec.Insecure, Detail: "the zone is not signed"}
		return
	}
	a.signing = a.content != nil && isBeingSigned(a.content, a.Chain.Zone)
	a.keys = dnssec.Trust(a.Chain.Zone, keys, a.Chain.Anchors, clock)
	a.Verdict = a.soften(worst(a.keys.Verdict(), a.Chain.Delegation))
}

// soften makes Unknown of a Bogus verdict that no resolver comes to as far as is known: nothing outside of the zone vouches for keys, and
// the server has not transferred the signed zone yet, or is still signing it.
func (a *Apex) soften(v dnssec.Verdict) dnssec.Verdict {
	switch {
	case v.Security != dnssec.Bogus || a.Chain.IsKnown():
		return v
	case len(a.tags) == 0 && a.behind:
		return unknown("the server has not transferred the signed zone yet")
	case a.signing && v.Code == dns.ExtendedErrorCodeRRSIGsMissing:
		return unknown("the zone is being signed, or its signatures are being removed")
	}
	return v
}

// typeSigning is BIND's private type for the state of signing (its manual, "sig-signing-type").
const typeSigning = 65534

// isBeingSigned reports whether BIND has not completed to sign a zone, or to remove signatures: algorithm, key tag, removal, completion.
func isBeingSigned(m *observe.Mirror, zone string) bool {
	set, _ := m.Get(rrset.Key{Name: zone, Type: typeSigning})
	return slices.ContainsFunc(set.Rdata, func(rdata string) bool {
		rr, err := rrset.ToRR(set.Key, 0, rdata)
		raw, ok := rr.(*dns.RFC3597)
		return err == nil && ok && len(raw.Rdata) == 10 && raw.Rdata[:2] != "00" && raw.Rdata[8:] == "00"
	})
}

func (a *Apex) soa() *dns.Msg {
	k := rrset.Key{Name: a.Chain.Zone, Type: dns.TypeSOA}
	var answer []dns.RR
	if rr, err := rrset.ToRR(k, a.content.SOA.TTL, a.content.SOA.Rdata()); err == nil {
		answer = append(answer, rr)
	}
	return reply(a.Chain.Zone, dns.TypeSOA, appendSignatures(answer, a.content, k))
}

func unknown(detail string) dnssec.Verdict {
	return dnssec.Verdict{Security: dnssec.Unknown, Detail: detail}
}

func mergeTags(a, b []uint16) []uint16 {
	if len(a) == 0 || len(b) == 0 {
		return append(a[:len(a):len(a)], b...)
	}
	all := append(a[:len(a):len(a)], b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// IsAnchored reports whether the chain of the zone begins at a trust anchor, and holds.
func (r *Result) IsAnchored() bool {
	if r == nil || r.best == nil || r.best.ofKeys.Security != dnssec.Secure && r.best.ofKeys.Security != dnssec.Expiring {
		return false
	}
	c := r.best.Chain
	return c.Source == TrustAnchor || c.Source == ParentDS && c.Parent.IsAnchored()
}
