package ask

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// Whether a zone is signed, its content shows. So nothing more is asked about a zone that is not. The servers of the zones above one are
// asked now and then, as is a server that is read by query for the zone's keys. Of a signed zone, a request for a single object asks each
// server for the zone's keys and for what the object declares, with signatures.

const (
	// chainAge is how old the answers of the servers of zones above may be, signedChainAge the same for a watched zone that is signed.
	chainAge, signedChainAge = 30 * time.Second, 2 * time.Second
	// keysAge is how old the keys may be that a server read by query has answered with; minKeysAge if the zone has changed since.
	keysAge, minKeysAge = 5 * time.Minute, 30 * time.Second
)

// askParents asks the servers of the zones above some: where a zone or its parent is signed, for answers from since or later; elsewhere as
// far as the last answers are old.
func (a *Asker) askParents(ctx context.Context, zones map[*desired.Zone]bool, since time.Time) {
	var wg sync.WaitGroup
	for from, parents := range a.parentsDue(zones, since) {
		wg.Go(func() { a.askZones(ctx, parents, from) })
	}
	wg.Wait()
}

// parentsDue returns which zones above some are to be asked, by the age that answers may have.
func (a *Asker) parentsDue(zones map[*desired.Zone]bool, since time.Time) map[time.Time]map[*desired.Zone]bool {
	now := time.Now()
	old, due := now.Add(-chainAge), map[time.Time]map[*desired.Zone]bool{}
	signed := map[*desired.Zone]bool{}
	isSigned := func(z *desired.Zone) bool {
		is, known := signed[z]
		if !known {
			is = a.evaluator.View(z, now).IsSigned()
			signed[z] = is
		}
		return is
	}
	for z := range zones {
		from, below := old, z
		for p := a.index.Parent(z); p != nil; below, p = p, a.index.Parent(p) {
			if since.After(from) && (isSigned(below) || isSigned(p)) {
				from = since
			}
			if due[from] == nil {
				due[from] = map[*desired.Zone]bool{}
			}
			if due[from][p] {
				break
			}
			if !zones[p] && a.isOld(p, from) {
				due[from][p] = true
			}
		}
	}
	return due
}

func (a *Asker) isOld(z *desired.Zone, since time.Time) bool {
	return slices.ContainsFunc(z.Servers, func(s observe.Server) bool {
		o := a.answers.Full(evaluate.PlaceOf(s, z.Declared.ZoneName()))
		return s.Addr.IsValid() && (o == nil || o.At.Before(since))
	})
}

// askKeys asks for the keys of some zones, as far as the last answers are old: servers that are read by query, and those of signed zones
// that transfer no keys.
func (a *Asker) askKeys(ctx context.Context, zones map[*desired.Zone]bool) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
	defer cancel()
	var wg sync.WaitGroup
	now := time.Now()
	for z := range zones {
		for _, s := range z.Servers {
			place := evaluate.PlaceOf(s, z.Declared.ZoneName())
			o, k := a.answers.Full(place), a.answers.Keys(place)
			if !s.Addr.IsValid() || o == nil || !o.Authoritative || o.Mirror == nil {
				continue
			}
			if s.ReadBy != v1beta1.ReadByQuery && (evaluate.HasKeys(o.Mirror) || !a.evaluator.View(z, now).IsSigned()) {
				continue
			}
			if k == nil || now.Sub(k.At) > keysAge || k.Serial != o.Serial && now.Sub(k.At) > minKeysAge {
				wg.Go(func() { a.askKeysOf(ctx, z, s, place, now) })
			}
		}
	}
	wg.Wait()
}

// askKeysOf asks a server for the keys of a zone, unless that was done at since or later.
func (a *Asker) askKeysOf(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place, since time.Time) {
	isAsked := func() bool { k := a.answers.Keys(place); return k != nil && !k.At.Before(since) }
	a.keyQuestions.await(ctx, place, isAsked, func(ctx context.Context) {
		answer := evaluate.KeysAnswer{At: time.Now()}
		if o := a.answers.Full(place); o != nil {
			answer.Serial = o.Serial
			answer.Transferred = o.Mirror != nil && !o.Mirror.IsPartial() && evaluate.HasKeys(o.Mirror)
		}
		m, err := a.askSigned(ctx, z, s, rrset.Key{Name: place.Zone, Type: dns.TypeDNSKEY})
		if err == nil && (m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError) {
			answer.Msg = m
		}
		a.answers.KeepKeys(place, answer)
	})
}

// askSigned asks a server for an RRset with its signatures, as resolvers ask.
func (a *Asker) askSigned(ctx context.Context, z *desired.Zone, s observe.Server, k rrset.Key) (*dns.Msg, error) {
	key, _ := a.transferKey(ctx, z.TransferKey(s))
	var held rrset.RRset
	if last := a.answers.Full(evaluate.PlaceOf(s, z.Declared.ZoneName())); last != nil && last.Mirror != nil {
		held, _ = last.Mirror.Get(k)
	}
	return a.observer.AskSigned(a.chargeTo(ctx, s.Peer()), s.Peer(), k, held, key, s.ReadBy == v1beta1.ReadByQuery)
}

// askSecured asks the servers of some objects in signed zones for the zone's keys and for what the objects declare, and judges the answers.
func (a *Asker) askSecured(ctx context.Context, subjects []*desired.Subject, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range subjects {
		if s == nil {
			continue
		}
		for _, z := range s.Declaring() {
			if !a.evaluator.View(z, time.Now()).IsSigned() {
				continue
			}
			keys := validate.ZoneQuestions(z.Declared.ZoneName())
			if s.Key.Kind != subject.ZoneKind.Kind {
				keys = z.Declared.ResolvableKeys(s.Key, MaxNames)
			}
			for i := range z.Servers {
				wg.Go(func() { a.JudgeAnswers(ctx, z, i, keys, since) })
			}
		}
	}
	wg.Wait()
}

// JudgeAnswers asks a server for some RRsets and judges the answers, unless it did so at since or later.
func (a *Asker) JudgeAnswers(ctx context.Context, z *desired.Zone, server int, keys []rrset.Key, since time.Time) {
	s := z.Servers[server]
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	if o := a.answers.Full(place); !s.Addr.IsValid() || o == nil || !o.Authoritative || o.Mirror == nil {
		return
	}
	var wg sync.WaitGroup
	for _, k := range keys {
		isJudged := func() bool { // An answer from since can have been judged by DS records of before.
			answer := a.answers.Judged(place, k)
			return answer != nil && !answer.At.Before(since) && a.evaluator.View(z, time.Now()).IsBy(server, answer)
		}
		wg.Go(func() {
			a.securedQuestions.await(ctx, nameQuestion{place, k}, isJudged, func(ctx context.Context) {
				answer := a.judgeAnswer(ctx, z, server, k, since)
				if answer.Verdict.Security == dnssec.Bogus { // The keys, or the zone, may have changed between two answers.
					answer = a.judgeAnswer(ctx, z, server, k, time.Now())
				}
				a.answers.KeepJudged(place, k, answer)
			})
		})
	}
	wg.Wait()
}

// judgeAnswer asks a server for an RRset and for the zone's keys, and judges the answer by keys from since or later.
func (a *Asker) judgeAnswer(ctx context.Context, z *desired.Zone, server int, k rrset.Key, since time.Time) validate.Answer {
	s := z.Servers[server]
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	answer := validate.Answer{At: time.Now()}
	var wg sync.WaitGroup
	wg.Go(func() { a.askKeysOf(ctx, z, s, place, since) })
	m, err := a.askSigned(ctx, z, s, k)
	wg.Wait()
	now := time.Now()
	view := a.evaluator.View(z, now)
	answer.Content, answer.Serial = view.Stamp(server)
	answer.Chain = view.Servers[server].Chain
	var keys *dns.Msg
	if known := a.answers.Keys(place); known != nil {
		keys = known.Msg
	}
	switch {
	case err != nil:
		answer.Verdict = dnssec.Verdict{Security: dnssec.Unknown, Detail: k.String() + ": " + detailOf(err)}
	case keys == nil:
		answer.Verdict = dnssec.Verdict{Security: dnssec.Unknown, Detail: "no answer to a question about the keys of the zone"}
	default:
		answer.Verdict = view.Servers[server].Judge(m, keys, a.evaluator.Clock(now), z.CutsIn(m)...)
	}
	return answer
}

func detailOf(err error) string {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e.Detail()
	}
	return "no answer in time"
}

// repeatBogus asks a server again for what was Bogus a while ago, or before its zone, or what vouches for its keys, changed.
func (a *Asker) repeatBogus(ctx context.Context, z *desired.Zone, s observe.Server) {
	server, place := slices.IndexFunc(z.Servers, s.Equal), evaluate.PlaceOf(s, z.Declared.ZoneName())
	isSuspect := len(a.answers.Suspect(place, func(*validate.Answer) bool { return true })) > 0
	if server < 0 || !isSuspect {
		return
	}
	now := time.Now()
	view := a.evaluator.View(z, now)
	content, serial := view.Stamp(server)
	keys := a.answers.Suspect(place, func(answer *validate.Answer) bool {
		return now.Sub(answer.At) > doubtInterval || answer.Content != content || answer.Serial != serial || !view.IsBy(server, answer)
	})
	a.JudgeAnswers(ctx, z, server, keys, now)
}
