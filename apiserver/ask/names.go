package ask

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const (
	// MaxNames bounds the names and types of one object that servers are asked about.
	MaxNames = 64
	// askAgain is how often servers are asked about those for which they have answered something else than they hold.
	askAgain = time.Second
	// maxAttempts is how often a server is asked whether it answers with its content while that changes.
	maxAttempts = 3
)

// askResolvable asks the servers of some objects for what these declare, as resolvers do. A transfer shows what a server
// holds; what it answers may be from another zone, or as a view or a response policy has it.
func (a *Asker) askResolvable(ctx context.Context, subjects []*desired.Subject, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range subjects {
		if s != nil {
			a.askDeclared(ctx, &wg, s, since)
		}
	}
	wg.Wait()
}

// askDeclared begins to ask the servers of one object.
func (a *Asker) askDeclared(ctx context.Context, wg *sync.WaitGroup, s *desired.Subject, since time.Time) {
	for z, keys := range resolvable(s) {
		for _, server := range z.Servers {
			if server.ReadBy != v1beta1.ReadByQuery {
				wg.Go(func() { a.askNames(ctx, z, server, keys, since) })
			}
		}
	}
	for z, server := range readByQuery(s) {
		wg.Go(func() { a.askObject(ctx, z, server, s.Key, since) })
	}
}

// resolvable yields the zones with data of an object, each with the names and types that resolvers get because of it.
func resolvable(s *desired.Subject) iter.Seq2[*desired.Zone, []rrset.Key] {
	return func(yield func(*desired.Zone, []rrset.Key) bool) {
		for _, z := range s.Declaring() {
			if keys := z.Declared.ResolvableKeys(s.Key, MaxNames); len(keys) > 0 && !yield(z, keys) {
				return
			}
		}
	}
}

// readByQuery yields the servers with data of an object that are read by query.
func readByQuery(s *desired.Subject) iter.Seq2[*desired.Zone, observe.Server] {
	return func(yield func(*desired.Zone, observe.Server) bool) {
		for _, z := range s.Declaring() {
			for _, server := range z.Servers {
				if server.ReadBy == v1beta1.ReadByQuery && !yield(z, server) {
					return
				}
			}
		}
	}
}

// askNames asks a server for names and types unless it was asked at since or later, and again for all for which it is known
// to answer something else, or may do so because of a zone below. It keeps what differs from the zone's content. That content
// is looked at again before: it may have changed, also under the same serial.
func (a *Asker) askNames(ctx context.Context, z *desired.Zone, s observe.Server, keys []rrset.Key, since time.Time) {
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	last := a.answers.Full(place)
	if last == nil || last.Mirror == nil {
		return
	}
	due := dueNames(last.Answers, keys, z.Below(s), since)
	if len(due) == 0 {
		return
	}
	answers := a.askEach(ctx, z, s, due, since)
	doubted := a.doubtedAnswers(place, answers, last, last.Answers)
	if len(doubted) > 0 { // Others may have asked before the content was as it is.
		maps.Copy(answers, a.askEach(ctx, z, s, doubted, time.Now()))
		doubted = a.doubtedAnswers(place, answers, last, last.Answers)
	}
	for attempt := 0; len(doubted) > 0 && ctx.Err() == nil; attempt++ {
		a.schedule.doubtContent(place)
		if o, ok := a.observe(ctx, z, s, place, time.Now()); ok && o.Mirror != nil {
			a.answers.Keep(place, o)
		}
		now := a.answers.Full(place)
		if now == nil || now.Mirror == nil {
			return
		}
		if now.Mirror == last.Mirror {
			break
		}
		if last = now; attempt == maxAttempts {
			maps.DeleteFunc(answers, func(k rrset.Key, _ observe.Answer) bool { return slices.Contains(doubted, k) })
			break
		}
		before := maps.Clone(answers)
		maps.Copy(answers, a.askEach(ctx, z, s, doubted, time.Now()))
		doubted = a.doubtedAnswers(place, answers, last, before)
	}
	if ctx.Err() == nil {
		a.answers.KeepAsked(place, answers)
	}
}

// dueNames decides what a server is to be asked about.
func dueNames(known map[rrset.Key]observe.Answer, keys []rrset.Key, below []string, since time.Time) []rrset.Key {
	due := slices.DeleteFunc(slices.Clone(keys), func(k rrset.Key) bool { a, asked := known[k]; return asked && !a.At.Before(since) })
	again := time.Now().Add(-askAgain)
	for k, a := range known {
		if a.At.Before(again) && !slices.Contains(due, k) {
			due = append(due, k)
		}
	}
	for _, name := range below {
		k := rrset.Key{Name: name, Type: dns.TypeSOA}
		if _, asked := known[k]; !asked {
			due = append(due, k)
		}
	}
	return due
}

// nameQuestion is a question for a name and type to a server.
type nameQuestion struct {
	place evaluate.Place
	rrset.Key
}

// askEach asks a server for names and types; answers are from since or later. Who asks for the same at the same time shares them.
func (a *Asker) askEach(ctx context.Context, z *desired.Zone, s observe.Server, keys []rrset.Key, since time.Time) map[rrset.Key]observe.Answer {
	if !s.Addr.IsValid() {
		return nil
	}
	signed, _ := a.transferKey(ctx, z.TransferKey(s))
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	last := a.answers.Full(place)
	var wg sync.WaitGroup
	for _, k := range keys {
		var held rrset.RRset
		if last != nil && last.Mirror != nil {
			held, _ = last.Mirror.Get(k)
		}
		q := nameQuestion{place, k}
		isAsked := func() bool { _, ok := a.answerSince(q, since); return ok }
		wg.Go(func() {
			a.nameQuestions.await(ctx, q, isAsked, func(ctx context.Context) {
				a.names.Set(q, a.observer.Ask(a.chargeTo(ctx, s.Peer()), s.Peer(), k, held, signed), a.options.Deadline)
			})
		})
	}
	wg.Wait()
	answers := map[rrset.Key]observe.Answer{}
	for _, k := range keys {
		if answer, ok := a.answerSince(nameQuestion{place, k}, since); ok {
			answers[k] = answer
		}
	}
	return answers
}

func (a *Asker) answerSince(q nameQuestion, since time.Time) (answer observe.Answer, ok bool) {
	last, known := a.names.Get(q)
	if known {
		answer, _ = last.(observe.Answer)
	}
	return answer, known && !answer.At.Before(since)
}

// doubtedAnswers compares answers with what the server holds. It returns the names and types for which the server answers
// something else, unless it did so before the last complete transfer, too. That a zone below has a start of authority is
// beyond doubt.
func (a *Asker) doubtedAnswers(place evaluate.Place, answers map[rrset.Key]observe.Answer, holds *observe.Observation, before map[rrset.Key]observe.Answer) []rrset.Key {
	var doubted []rrset.Key
	for k, is := range answers {
		if set, found := holds.Mirror.Get(k); found {
			is.Held = set
		} else {
			is.Held = rrset.RRset{Key: k}
		}
		if is.Since = is.At; is.Says(before[k]) {
			is.Since = before[k].Since
		}
		answers[k] = is
		if is.Differs() && k.Type != dns.TypeSOA && !a.schedule.isTransferredSince(place, is.Since) {
			doubted = append(doubted, k)
		}
	}
	return doubted
}
