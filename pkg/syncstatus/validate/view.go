package validate

import (
	"cmp"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Answer is the verdict about an answer of a server, and what was known when it was given.
type Answer struct {
	At      time.Time
	Verdict dnssec.Verdict
	// Content and Serial are those of the server. The answer says nothing about others.
	Content *observe.Mirror
	Serial  uint32
	// Chain is what the answer was judged by.
	Chain *Chain
	// AfterBogus is true of a verdict that is Unknown and follows a Bogus one: the server has not shown that it is right again.
	AfterBogus bool
}

// IsSuspect reports whether the last answer that could be judged was Bogus.
func (a *Answer) IsSuspect() bool { return a.Verdict.Security == dnssec.Bogus || a.AfterBogus }

// View is a Result at one time, with the answers that were judged.
type View struct {
	*Result
	// Answer returns the last verdict about an answer of a server; nil if there is none.
	Answer func(server int, k rrset.Key) *Answer

	validator *Validator
	zone      Zone
	now       time.Time
	limits    limits
}

// View judges a zone for some time.
func (v *Validator) View(z Zone, now time.Time, answer func(server int, k rrset.Key) *Answer) *View {
	return &View{Result: v.Zone(z, now), Answer: answer, validator: v, zone: z, now: now, limits: limitsOf(v.Clock(now))}
}

// Of judges a server by some RRsets; by all of the zone if keys is nil. That a name does not exist may be proven less well than the zone
// (opt-out), or not be asked: about the zone it says something only if the proof is Bogus.
func (w *View) Of(server int, keys []rrset.Key) dnssec.Verdict {
	a := w.Servers[server]
	var v dnssec.Verdict
	if keys == nil {
		v = w.validator.checkAll(a, w.zone.Servers[server].Peer, w.now, w.limits)
		keys = ZoneQuestions(w.Name)
	} else {
		v = a.check(keys, w.limits)
	}
	if v.Security == dnssec.Insecure {
		return v
	}
	for _, k := range keys {
		answer := w.answer(server, k)
		if answer != nil && (answer.Verdict.Security == dnssec.Bogus || k.Name != probe+w.Name) {
			v = worst(v, answer.Verdict)
		}
	}
	return v
}

// Stamp returns what an answer that a server gives now has as its Content and Serial.
func (w *View) Stamp(server int) (content *observe.Mirror, serial uint32) {
	return w.zone.Servers[server].Content, w.zone.Servers[server].Serial
}

// IsBy reports whether a verdict about an answer of a server was made by what vouches for the zone's keys now.
func (w *View) IsBy(server int, answer *Answer) bool {
	return answer.Chain.says(w.Servers[server].Chain)
}

// answer is the last verdict about an answer of a server that it could give now as well; nil if there is none. A Bogus one stays until the
// server has answered again: its answers need not follow from its content.
func (w *View) answer(server int, k rrset.Key) *Answer {
	if w.Answer == nil {
		return nil
	}
	answer, s := w.Answer(server, k), w.zone.Servers[server]
	if answer == nil || !answer.IsSuspect() && (answer.Content != s.Content || answer.Serial != s.Serial || !w.IsBy(server, answer)) {
		return nil
	}
	return answer
}

// probe is a name that no zone is expected to have: its denial shows whether the zone can prove that a name does not exist.
const probe = "_lockstep-no-such-name."

// ZoneQuestions are what a server is asked about a zone itself: its apex, and a name that does not exist.
func ZoneQuestions(zone string) []rrset.Key {
	keys := []rrset.Key{{Name: zone, Type: dns.TypeNS}, {Name: zone, Type: dns.TypeSOA}}
	if name := probe + zone; zone != "." && len(name) < 254 {
		keys = append(keys, rrset.Key{Name: name, Type: dns.TypeTXT})
	}
	return keys
}

// Link is one link of the chain from the keys that are trusted to an answer.
type Link struct {
	// Server is the index of the server that has it; -1 for the newest content of a zone above.
	Server int
	rrset.Key
	// TrustedBy says what vouches for a DNSKEY RRset; empty for others, which the zone's keys vouch for.
	TrustedBy Source
	// Keys are the DNSKEY or DS records of the link.
	Keys    []dns.RR
	Verdict dnssec.Verdict
	// Gap says what of the chain above could not be reached.
	Gap string
}

// Above are the links of the zones above and of the delegation, from the top.
func (w *View) Above(server int) []Link {
	c := w.Servers[server].Chain
	if c.Parent == nil || c.Parent.best == nil {
		return nil
	}
	parent := c.Parent.best
	up := &View{Result: &Result{Servers: []*Apex{parent}}}
	links := append(up.Above(0), parent.link(-1))
	delegation := c.Delegation
	if parent.ofKeys.Security == dnssec.Bogus { // The link above says so.
		delegation = unknown(delegation.Detail)
	}
	return append(links, Link{Server: -1, Key: rrset.Key{Name: c.Zone, Type: dns.TypeDS}, Keys: c.Anchors, Verdict: delegation})
}

// Zone is the link of a zone's keys on a server.
func (w *View) Zone(server int) Link { return w.Servers[server].link(server) }

func (a *Apex) link(server int) Link {
	verdict := a.Verdict
	if a.keys != nil {
		verdict = a.soften(a.keys.Verdict())
	}
	return Link{
		Server: server, Key: rrset.Key{Name: a.Chain.Zone, Type: dns.TypeDNSKEY}, TrustedBy: cmp.Or(a.Chain.Source, OwnKeys),
		Keys: keysOf(a.Keys), Verdict: verdict, Gap: a.Chain.Gap,
	}
}

// Answers are the links of some RRsets on a server.
func (w *View) Answers(server int, keys []rrset.Key) (links []Link) {
	for _, k := range keys {
		l := Link{Server: server, Key: k}
		if answer := w.answer(server, k); answer != nil {
			l.Verdict = answer.Verdict
		} else {
			l.Verdict = w.Servers[server].check([]rrset.Key{k}, w.limits)
		}
		links = append(links, l)
	}
	return links
}
