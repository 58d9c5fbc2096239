package observe

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// maxAttempts is how often a zone that changes meanwhile is asked about what differs.
const maxAttempts = 3

// errNoAuthority means that an answer is from elsewhere than the zone.
var errNoAuthority = errors.New("the answer is without authority")

// ObserveNames is Observe for a server that is read by query: Mirror is partial, and has the answers to all that was ever asked
// of the zone with the key. The questions are asked now, signed like the one for the SOA, and at most Options.QuestionRate of all
// that an address gets in a second, those of each namespace in turn. The answers count for the SOA that the zone had before and after
// them; of a zone that changes all the time they count for their own time.
func (o *Observer) ObserveNames(ctx context.Context, server Peer, zone Zone, key *wire.Key, since time.Time, questions ...Question) Observation {
	t := entryKeyOf(server, zone, key)
	t.byQuery = true
	before := o.lastKnown(t)
	if before.Mirror == nil || len(questions) == 0 {
		before = o.observe(ctx, t, key, since)
	}
	for attempt := 0; before.Mirror != nil && len(questions) > 0 && attempt < maxAttempts; attempt++ {
		answers := o.askEach(ctx, t, key, questions)
		after := o.observe(ctx, t, key, time.Now())
		if after.Mirror == nil || ctx.Err() != nil {
			before = after
			o.keepAnswers(t, answers, 0)
			break
		}
		var era uint32
		switch {
		case key == nil: // Anybody may have sent the SOA.
			questions = nil
		case before.Mirror.era == after.Mirror.era:
			era, questions = after.Mirror.era, nil
		default:
			questions = differing(answers)
		}
		before = o.keepAnswers(t, answers, era)
	}
	if before.Mirror != nil && before.At.Before(since) {
		return o.observe(ctx, t, key, since)
	}
	return before
}

// AskZone asks a server for one RRset of a zone and keeps nothing of the answer. It has no data if the server says, with authority for that zone,
// that there is none: at a delegation the zone below may answer instead.
func (o *Observer) AskZone(ctx context.Context, server Peer, zone Zone, key *wire.Key, about rrset.Key) (rrset.RRset, error) {
	t := entryKeyOf(server, zone, key)
	s, done := o.useServer(t.server)
	defer done()
	a := o.askQuestion(ctx, s, t, key, Question{Key: about}, contentOfZone)
	return a.set, a.err
}

// contentOfZone finds what an authoritative reply says of a name and type, or that there is none in the zone (RFC 2308 section 2).
func contentOfZone(k rrset.Key, zone string, m *dns.Msg) (rrset.RRset, error) {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return rrset.RRset{}, &wire.Error{Rcode: m.Rcode}
	}
	set := collectRRset(k, m.Answer)
	isDenied := slices.ContainsFunc(m.Ns, func(rr dns.RR) bool {
		above, _, _ := rrset.FromRR(rr)
		return above == rrset.Key{Name: zone, Type: dns.TypeSOA}
	})
	if !m.Authoritative || len(set.Rdata) == 0 && !isDenied {
		return rrset.RRset{}, &wire.Error{Err: errNoAuthority}
	}
	return set, nil
}

// differing leaves the questions whose answer is not what should be there; failed ones are not among them.
func differing(answers []answered) (questions []Question) {
	for _, a := range answers {
		if a.err == nil && a.Differs(a.set) {
			questions = append(questions, a.Question)
		}
	}
	return questions
}

// lastKnown is the last observation, the zero Observation if there is none.
func (o *Observer) lastKnown(t entryKey) Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if z := o.find(t); z != nil && z.last != nil {
		return *z.last
	}
	return Observation{}
}

// keepAnswers adds answers to the partial mirror, and returns the last observation with it. What there is no memory for remains
// unknown.
func (o *Observer) keepAnswers(t entryKey, answers []answered, era uint32) Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	z := o.entryFor(t)
	if z.last == nil || z.mirror == nil {
		return Observation{Server: t.server.Addr, At: time.Now(), Rcode: NoReply, Err: transferError(t, errNoAuthority)}
	}
	next := z.mirror.withAnswers(answers, era)
	err := o.checkSize(next)
	if more := next.bytes - z.bytes; err == nil && more > 0 {
		if err = o.memory.reserve(t.zone.Namespace, more); err == nil {
			o.memory.Add(t.zone.Namespace, -more) // charge takes it.
		}
	}
	if err != nil {
		for i := range answers {
			answers[i].err = err
		}
		next = z.mirror.withAnswers(answers, 0)
	}
	z.mirror = next
	o.charge(z, next.bytes)
	last := *z.last
	if last.Mirror != nil {
		last.Mirror = next
		z.last = &last
	}
	return last
}

// askEach asks a server all questions.
func (o *Observer) askEach(ctx context.Context, t entryKey, key *wire.Key, questions []Question) []answered {
	s, done := o.useServer(t.server)
	defer done()
	answers := make([]answered, len(questions))
	var wg sync.WaitGroup
	for i, q := range questions {
		wg.Go(func() { answers[i] = o.askQuestion(ctx, s, t, key, q, contentInReply) })
	}
	wg.Wait()
	return answers
}

// askQuestion asks, and reads the reply as read does.
func (o *Observer) askQuestion(ctx context.Context, s *serverEntry, t entryKey, key *wire.Key, q Question,
	read func(k rrset.Key, zone string, m *dns.Msg) (rrset.RRset, error)) answered {
	a := answered{Question: q, at: time.Now()}
	if a.err = s.rate.turns.wait(ctx, t.server.Namespace); a.err != nil {
		return a
	}
	release, err := s.questions.acquire(ctx)
	if a.err = err; err != nil {
		return a
	}
	defer release()
	a.at = time.Now()
	reply, err := wire.Query(ctx, t.server.Addr, q.Name, q.Type, wire.WithTimeout(o.options.Timeout), wire.WithReplySize(answerSize(q.Want)), wire.WithKey(key))
	if err == nil {
		a.set, err = read(q.Key, t.zone.Name, reply.Msg)
	}
	if a.err = err; err != nil {
		a.err = errorAt(err, t.server.Addr, q.Name)
	}
	o.options.Meter.Questioned(t.server, a.err)
	return a
}

func errorAt(err error, server netip.AddrPort, name string) error {
	var known *wire.Error
	if errors.As(err, &known) && known.Server != "" {
		return err
	}
	if known == nil {
		known = &wire.Error{Err: err}
	}
	known.Op, known.Server, known.Zone = "query", server.String(), name
	return known
}

// contentInReply finds what a reply shows of a zone's content at a name and type: the answer or, at and below a delegation, the referral
// with the NS records and their glue (RFC 1034 section 4.3.2). Any rcode but NOERROR and NXDOMAIN is a *wire.Error.
func contentInReply(k rrset.Key, zone string, m *dns.Msg) (rrset.RRset, error) {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return rrset.RRset{}, &wire.Error{Rcode: m.Rcode}
	}
	if m.Authoritative {
		return collectRRset(k, m.Answer), nil
	}
	cut := ""
	for _, rr := range m.Ns {
		if rr.Header().Rrtype == dns.TypeNS {
			above, _, _ := rrset.FromRR(rr)
			cut = above.Name
		}
	}
	if len(m.Answer) > 0 || m.Rcode != dns.RcodeSuccess || cut == "" || cut == zone || !rrset.IsSubdomain(cut, zone) || !rrset.IsSubdomain(k.Name, cut) {
		return rrset.RRset{}, &wire.Error{Err: errNoAuthority}
	}
	if k.Type == dns.TypeNS {
		return collectRRset(k, m.Ns), nil
	}
	return collectRRset(k, m.Extra), nil
}

// collectRRset gathers the RRset at a name and type from some records; it has no data if none match.
func collectRRset(k rrset.Key, records []dns.RR) rrset.RRset {
	var rdata []string
	var ttl uint32
	for _, rr := range records {
		if rr.Header().Class != dns.ClassINET {
			continue
		}
		if key, seconds, data := rrset.FromRR(rr); key == k {
			rdata, ttl = append(rdata, data), seconds
		}
	}
	if len(rdata) == 0 {
		return rrset.RRset{Key: k}
	}
	return rrset.New(k, ttl, rdata...)
}
