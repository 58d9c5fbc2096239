package ask

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

const (
	// questionBatch is how many questions for a zone are under way, between two for its SOA.
	questionBatch = 128
	// sweepPause is how long a server that is read by query is left alone after a sweep over a zone.
	sweepPause = 2 * time.Second
)

// A server that is read by query is asked for the RRsets in question: at once for those of a single object, and for those of
// which nothing is known, or of which the declaration or the zone has changed and which were not in sync. A sweep in the
// background asks for the others, when the zone's SOA has changed or at the verify interval; until then they are known by older
// answers, and by their age.

// urgency says which questions are to be asked.
type urgency bool

const (
	// urgent are those without whose answers nothing can be said.
	urgent urgency = false
	// complete are all of which the answer is not known to be still good.
	complete urgency = true
)

// questionTask asks a server for what is declared in a zone.
type questionTask struct {
	evaluate.Place
	what urgency
}

// questionsDue are what a server has to be asked about for the present, as of since or later, the oldest answers first.
func (a *Asker) questionsDue(z *desired.Zone, place evaluate.Place, since time.Time, what urgency) []observe.Question {
	o := a.answers.Full(place)
	if o == nil || o.Mirror == nil || !o.Mirror.IsPartial() {
		return nil
	}
	now := time.Now()
	var due []observe.Question
	for q := range z.Declared.Questions() {
		if a.isQuestionDue(o, q, since, now, what) {
			due = append(due, q)
		}
	}
	lastAsked := func(q observe.Question) time.Time { asked, _ := o.Mirror.Asked(q.Key); return asked.At }
	slices.SortFunc(due, func(a, b observe.Question) int {
		return cmp.Or(lastAsked(a).Compare(lastAsked(b)), a.Key.Compare(b.Key))
	})
	return due
}

func (a *Asker) isQuestionDue(o *observe.Observation, q observe.Question, since, now time.Time, what urgency) bool {
	asked, known := o.Mirror.Asked(q.Key)
	if !known || asked.For != q.For {
		return true
	}
	seen, answered := o.SeenAt(q.Key)
	if !answered {
		return asked.At.Before(since)
	}
	have, _ := o.Mirror.Get(q.Key)
	isOld := seen.Before(since)
	switch differs := q.Differs(have); {
	case what == urgent:
		return isOld && differs || o.At.Sub(seen) >= syncstatus.MaxAnswerAge
	case differs && now.Sub(asked.At) >= doubtInterval: // Under the same SOA it may have other data by now.
		return true
	}
	return isOld || a.options.VerifyInterval > 0 && now.Sub(asked.At) >= a.options.VerifyInterval
}

// awaitQuestions asks the servers of zones that are read by query, and waits until all that is due was asked or ctx ends.
func (a *Asker) awaitQuestions(ctx context.Context, zones map[*desired.Zone]bool, since time.Time, what urgency) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
	defer cancel()
	var wg sync.WaitGroup
	for z := range zones {
		for _, s := range z.Servers {
			if s.ReadBy == v1beta1.ReadByQuery && s.Addr.IsValid() {
				wg.Go(func() { a.awaitAnswers(ctx, z, s, since, what) })
			}
		}
	}
	wg.Wait()
}

func (a *Asker) awaitAnswers(ctx context.Context, z *desired.Zone, s observe.Server, since time.Time, what urgency) {
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	task := questionTask{place, what}
	isDone := func() bool { // Whoever asks about another zone waits for this: it must not take long.
		last, known := a.questionsAsked.Get(task)
		asked, _ := last.(askedQuestions)
		return known && asked.of == z.Declared && !asked.since.Before(since)
	}
	a.questionTasks.await(ctx, task, isDone, func(ctx context.Context) {
		a.askDue(ctx, z, s, place, since, what)
		a.questionsAsked.Set(task, askedQuestions{z.Declared, since}, a.options.Deadline)
	})
}

// askedQuestions says that a server was asked, or is silent, about what is declared, as of since.
type askedQuestions struct {
	of    *syncstatus.DesiredState
	since time.Time
}

// askDue asks all questions that are due, and keeps the answers as they come. It ends when the server is silent. It reports whether
// there were any.
func (a *Asker) askDue(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place, since time.Time, what urgency) (some bool) {
	for batch := range slices.Chunk(a.questionsDue(z, place, since, what), questionBatch) {
		if some = true; !a.askQuestions(ctx, z, s, place, time.Now(), batch) {
			break
		}
	}
	return some
}

// askQuestions asks a server, and keeps its answers. It reports whether the server serves the zone.
func (a *Asker) askQuestions(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place, since time.Time, questions []observe.Question) bool {
	o, ok := a.observe(ctx, z, s, place, since, questions...)
	if !ok || ctx.Err() != nil && o.Rcode == observe.NoReply {
		return false
	}
	a.answers.Keep(place, o)
	return o.Mirror != nil
}

// askObject asks a server for the RRsets of one object, unless it has answered for them since.
func (a *Asker) askObject(ctx context.Context, z *desired.Zone, s observe.Server, object desired.Key, since time.Time) {
	if !s.Addr.IsValid() {
		return
	}
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	due := func() (due []observe.Question) {
		o := a.answers.Full(place)
		if o != nil && o.Mirror == nil && !o.At.Before(since) {
			return nil // The server does not serve the zone.
		}
		for _, q := range z.Declared.QuestionsOf(object) {
			if o == nil || o.Mirror == nil {
				due = append(due, q)
			} else if asked, known := o.Mirror.Asked(q.Key); !known || asked.For != q.For || asked.At.Before(since) {
				due = append(due, q)
			}
		}
		return due
	}
	a.objectQuestions.await(ctx, objectQuestion{place, object}, func() bool { return len(due()) == 0 }, func(ctx context.Context) {
		for batch := range slices.Chunk(due(), questionBatch) {
			if !a.askQuestions(ctx, z, s, place, since, batch) {
				return
			}
		}
	})
}

// objectQuestion is what a server is asked because of one object.
type objectQuestion struct {
	evaluate.Place
	object desired.Key
}

// sweep asks a server in the background for all that is due, unless that was done lately.
func (a *Asker) sweep(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place) {
	if !a.sweeps.begin(place) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer a.sweeps.end(place)
		began, o := time.Now(), a.answers.Full(place)
		if o != nil && a.askDue(ctx, z, s, place, o.At, complete) { // What its SOA shows to be as it was is not asked.
			a.meter.noteSweep(s.Peer(), time.Since(began))
		}
	}()
}

// sweepSchedule remembers which zones on which servers are being swept, or were lately.
type sweepSchedule struct {
	mu     sync.Mutex
	places *cache.Expiring
}

// maxSweepTime is longer than any sweep takes: a process asks nobody for hours.
const maxSweepTime = time.Hour

// begin lets one sweep of a place begin at a time.
func (s *sweepSchedule) begin(place evaluate.Place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.places.Get(place); known {
		return false
	}
	s.places.Set(place, struct{}{}, maxSweepTime)
	return true
}

func (s *sweepSchedule) end(place evaluate.Place) { s.places.Set(place, struct{}{}, sweepPause) }

// observeZone asks a server for all of a zone, or for the answers to some questions beside those to earlier ones.
func (a *Asker) observeZone(ctx context.Context, z *desired.Zone, s observe.Server, key *wire.Key, since time.Time, questions []observe.Question) observe.Observation {
	zone := observedZone(z)
	ctx = a.chargeTo(ctx, s.Peer())
	if s.ReadBy == v1beta1.ReadByQuery {
		return a.observer.ObserveNames(ctx, s.Peer(), zone, key, since, questions...)
	}
	return a.observer.Observe(ctx, s.Peer(), zone, key, since)
}
