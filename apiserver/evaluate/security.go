package evaluate

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// KeysAnswer is what a server answered to a question about a zone's DNSKEY records.
type KeysAnswer struct {
	At time.Time
	// Serial of the zone on the server at that time.
	Serial uint32
	// Transferred is true if the content that the server transferred had keys at that time: then later content without any says more.
	Transferred bool
	// Msg is nil if there was no answer.
	Msg *dns.Msg
}

// judgedAnswers are verdicts about answers of servers. They are safe for concurrent use.
type judgedAnswers struct {
	mu     sync.Mutex
	places map[Place]map[rrset.Key]*validate.Answer
	keys   map[Place]*KeysAnswer
	swept  time.Time
}

// judgedTimeout is how long a verdict about an answer is kept, a Bogus one as long as what a server answers in place of its content.
func judgedTimeout(a *validate.Answer) time.Duration {
	if a.IsSuspect() {
		return askedTimeout
	}
	return answerTimeout
}

// sweep drops what is old. j.mu is held.
func (j *judgedAnswers) sweep(now time.Time) {
	if now.Sub(j.swept) < answerTimeout {
		return
	}
	j.swept = now
	for place, answers := range j.places {
		maps.DeleteFunc(answers, func(_ rrset.Key, a *validate.Answer) bool { return now.Sub(a.At) > judgedTimeout(a) })
		if len(answers) == 0 {
			delete(j.places, place)
		}
	}
	maps.DeleteFunc(j.keys, func(_ Place, k *KeysAnswer) bool { return now.Sub(k.At) > 2*keysTimeout })
}

// keysTimeout is how old an answer about DNSKEY records may be that is still used.
const keysTimeout = 10 * time.Minute

// KeepJudged takes over the verdict about an answer. That a server has not answered does not clear it.
func (a *Answers) KeepJudged(place Place, k rrset.Key, answer validate.Answer) {
	j := &a.judged
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sweep(time.Now())
	answers := j.places[place]
	if answers == nil {
		answers = map[rrset.Key]*validate.Answer{}
		j.places[place] = answers
	}
	switch was := answers[k]; {
	case was == nil:
	case answer.At.Before(was.At):
		return
	default:
		answer.AfterBogus = answer.Verdict.Security == dnssec.Unknown && was.IsSuspect()
	}
	answers[k] = &answer
	for len(answers) > maxAsked {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(answers)), func(a, b rrset.Key) int { return answers[a].At.Compare(answers[b].At) })
		delete(answers, oldest)
	}
}

// Judged is the last verdict about an answer of a place; nil if there is none. It must not be changed.
func (a *Answers) Judged(place Place, k rrset.Key) *validate.Answer {
	a.judged.mu.Lock()
	defer a.judged.mu.Unlock()
	return a.judged.places[place][k]
}

// Suspect are the names and types of a place about which the last answer that could be judged was Bogus, of those answers that is selects.
func (a *Answers) Suspect(place Place, is func(*validate.Answer) bool) (keys []rrset.Key) {
	a.judged.mu.Lock()
	defer a.judged.mu.Unlock()
	for k, answer := range a.judged.places[place] {
		if answer.IsSuspect() && is(answer) {
			keys = append(keys, k)
		}
	}
	return keys
}

// rejected are the verdicts about answers of a place that were Bogus or Unknown.
func (a *Answers) rejected(place Place) map[rrset.Key]dnssec.Security {
	a.judged.mu.Lock()
	defer a.judged.mu.Unlock()
	verdicts := map[rrset.Key]dnssec.Security{}
	for k, answer := range a.judged.places[place] {
		if security := answer.Verdict.Security; security == dnssec.Bogus || security == dnssec.Unknown {
			verdicts[k] = security
		}
	}
	return verdicts
}

// KeepKeys takes over an answer about DNSKEY records. One that says the same as the one before does not replace its message: whoever
// remembers what follows from it need not judge it again.
func (a *Answers) KeepKeys(place Place, k KeysAnswer) {
	a.judged.mu.Lock()
	defer a.judged.mu.Unlock()
	a.judged.sweep(time.Now())
	if was := a.judged.keys[place]; was != nil && was.Msg != nil && k.Msg != nil && sameRecords(was.Msg.Answer, k.Msg.Answer) {
		k.Msg = was.Msg
	}
	a.judged.keys[place] = &k
}

func sameRecords(a, b []dns.RR) bool {
	text := func(all []dns.RR) (lines []string) {
		for _, rr := range all {
			rr = dns.Copy(rr)
			rr.Header().Ttl = 0
			lines = append(lines, rr.String())
		}
		slices.Sort(lines)
		return lines
	}
	return slices.Equal(text(a), text(b))
}

// Keys is the last answer of a place about DNSKEY records; nil if there is none. It must not be changed.
func (a *Answers) Keys(place Place) *KeysAnswer {
	a.judged.mu.Lock()
	defer a.judged.mu.Unlock()
	return a.judged.keys[place]
}

// maxParents bounds the zones above one that a chain leads through.
const maxParents = 16

// View judges a zone by the last answers of its servers.
func (e *Evaluator) View(z *desired.Zone, now time.Time) *validate.View {
	zone := z.Declared.ZoneName()
	return e.validator.View(e.validatedZone(z, now, maxParents), now, func(server int, k rrset.Key) *validate.Answer {
		return e.answers.Judged(PlaceOf(z.Servers[server], zone), k)
	})
}

// CountZones counts the zones that somebody has asked about lately by their security; first is when the first of their signatures expires.
func (e *Evaluator) CountZones(now time.Time) (zones map[dnssec.Security]int, first time.Time) {
	return e.validator.Count(now)
}

// Clock is how answers are judged at a time.
func (e *Evaluator) Clock(now time.Time) dnssec.Clock { return e.validator.Clock(now) }

func (e *Evaluator) validatedZone(z *desired.Zone, now time.Time, parents int) validate.Zone {
	out := validate.Zone{Name: z.Declared.ZoneName(), Doubt: z.Declared.Doubt(), Servers: make([]validate.Server, len(z.Servers))}
	for i, o := range e.answers.ofZone(z) {
		s := z.Servers[i]
		server := validate.Server{Peer: s.Peer(), Primary: s.Role == observe.Primary}
		if s.Shared {
			server.Line = s.Provider
		}
		if o.Authoritative && !s.Unsigned {
			server.Serial = o.Serial
		}
		if o.Mirror != nil {
			server.Content, server.Keys = e.keysFrom(o.Mirror, PlaceOf(s, out.Name), now)
		}
		server.Unread = o.Mirror == nil && s.Addr.IsValid() && s.ReadBy != v1beta1.ReadByQuery
		out.Servers[i] = server
	}
	if parent := e.index.Parent(z); parent != nil && parents > 0 {
		result := e.validator.Zone(e.validatedZone(parent, now, parents-1), now)
		if vouches(parent, z, result) {
			out.Parent = result
		}
	}
	return out
}

// keysFrom says where the keys of a zone on a server are to be seen: in its content, or in an answer if it is read by query, or signs its
// answers but not what it transfers.
func (e *Evaluator) keysFrom(m *observe.Mirror, place Place, now time.Time) (*observe.Mirror, *dns.Msg) {
	partial := m.IsPartial()
	if !partial && HasKeys(m) {
		return m, nil
	}
	k := e.answers.Keys(place)
	usable := k != nil && k.Msg != nil && now.Sub(k.At) < keysTimeout
	switch {
	case usable && (partial || !k.Transferred && slices.ContainsFunc(k.Msg.Answer, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeDNSKEY })):
		return nil, k.Msg
	case partial:
		return nil, nil
	}
	return m, nil
}

// HasKeys reports whether a zone's content has DNSKEY records.
func HasKeys(m *observe.Mirror) bool {
	_, signed := m.Get(rrset.Key{Name: m.Zone, Type: dns.TypeDNSKEY})
	return signed
}

// vouches reports whether what a zone above says of a zone counts: nobody else could have declared it, or a trust anchor proves it.
func vouches(parent, z *desired.Zone, judged *validate.Result) bool {
	return parent.Key.Namespace == z.Key.Namespace || judged.IsAnchored() || sharesServers(z, parent)
}

// isParent reports whether a zone is the one above another, as far as is known. One on servers of others, which anybody could have declared,
// is if it delegates the other one to its name servers.
func (e *Evaluator) isParent(parent, z *desired.Zone, above, of *syncstatus.Evaluation) bool {
	now := time.Now()
	return vouches(parent, z, e.validator.Zone(e.validatedZone(parent, now, maxParents-1), now)) || above.DelegatesTo(of)
}

// sharesServers reports whether one server has both zones: then whoever runs it has permitted the name of the parent, too. Of zones of
// other namespaces, anybody could declare a parent on servers of their own.
func sharesServers(a, b *desired.Zone) bool {
	return slices.ContainsFunc(a.Servers, func(s observe.Server) bool {
		return s.Addr.IsValid() && slices.ContainsFunc(b.Servers, func(o observe.Server) bool { return o.Peer() == s.Peer() })
	})
}

// SecurityState is what the security of a zone's objects depends on besides its servers' content.
type SecurityState struct {
	// Servers are the verdicts by server, of the apex and of the zone's signatures.
	Servers []dnssec.Security
	Codes   []uint16
	// Answers are the verdicts about answers that were Bogus or Unknown, by server.
	Answers []map[rrset.Key]dnssec.Security
	// Signed is true if resolvers expect signatures; Moving if some have expired or expire soon, so that verdicts change with time.
	Signed, Moving bool
}

// Equal compares what two states say of all objects of a zone.
func (s SecurityState) Equal(o SecurityState) bool {
	return slices.Equal(s.Servers, o.Servers) && slices.Equal(s.Codes, o.Codes) && s.Signed == o.Signed
}

// ChangedAnswers yields the names and types of which an answer is Bogus or Unknown in one of two states, and not the same in the other. They
// have the same servers.
func (s SecurityState) ChangedAnswers(o SecurityState) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		for i := range min(len(s.Answers), len(o.Answers)) {
			for _, pair := range [][2]map[rrset.Key]dnssec.Security{{s.Answers[i], o.Answers[i]}, {o.Answers[i], s.Answers[i]}} {
				for k, security := range pair[0] {
					if pair[1][k] != security && !yield(k) {
						return
					}
				}
			}
		}
	}
}

// Security is the present state of a zone.
func (e *Evaluator) Security(z *desired.Zone, now time.Time) (s SecurityState) {
	w := e.View(z, now)
	s.Signed = w.IsSigned()
	for i := range z.Servers {
		v := w.Of(i, nil)
		s.Servers, s.Codes = append(s.Servers, v.Security), append(s.Codes, v.Code)
		s.Moving = s.Moving || v.Security == dnssec.Expiring || v.Security == dnssec.Bogus
		s.Answers = append(s.Answers, e.answers.rejected(PlaceOf(z.Servers[i], z.Declared.ZoneName())))
	}
	return s
}
