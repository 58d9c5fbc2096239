package ask

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

const (
	// answersForDeadline is how many answers of a server extend a wait for it by one more deadline: a server that is asked about many
	// zones gives them faster, and one that answers slowly on purpose gains little.
	answersForDeadline = 400
	// maxWait is how long a server is waited for at most, unless the deadline is later. Requests end after a minute.
	maxWait = 30 * time.Second
)

// errTooSlow is why a wait for a server ends.
var errTooSlow = errors.New("the server has not answered within the deadline")

// answerDeadlines bounds waits for servers. A silent one is given up at the deadline. A question to a server that is asked
// about thousands of zones waits for its turn first: it has the deadline, and more time for each answer that the server gives meanwhile.
// With a fixed deadline of two seconds, 1,800 of 5,000 zones on a server that answers in 20 ms would pass for unreachable
// (TestServerOfManyZones).
type answerDeadlines struct {
	deadline time.Duration

	mu      sync.Mutex
	servers map[observe.Peer]*awaitedServer
}

// awaitedServer is a server that somebody waits for.
type awaitedServer struct {
	waits int
	// answers are those since somebody has been waiting.
	answers int
}

func newAnswerDeadlines(deadline time.Duration) *answerDeadlines {
	return &answerDeadlines{deadline: deadline, servers: map[observe.Peer]*awaitedServer{}}
}

// await makes a context for questions to a server that are asked now. Its cause is errTooSlow once the server was waited for long enough.
// The caller ends the wait.
func (d *answerDeadlines) await(ctx context.Context, server observe.Peer) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.servers[server]
	if s == nil {
		s = &awaitedServer{}
		d.servers[server] = s
	}
	s.waits++
	before := s.answers
	var timer *time.Timer
	timer = time.AfterFunc(d.deadline, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		credit := time.Duration(s.answers-before) * d.deadline / answersForDeadline
		if left := min(d.deadline+credit, max(d.deadline, maxWait)) - time.Since(began); left > 0 && ctx.Err() == nil {
			timer.Reset(left)
			return
		}
		cancel(errTooSlow)
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		if s.waits--; s.waits == 0 {
			delete(d.servers, server)
		}
	}
}

// noteAnswer notes that a server has answered.
func (d *answerDeadlines) noteAnswer(server observe.Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.servers[server]; s != nil {
		s.answers++
	}
}

// answerMeter notes each answer, however many callers share it.
type answerMeter struct {
	*meter
	deadlines *answerDeadlines
}

// Asked implements observe.Meter.
func (m answerMeter) Asked(server observe.Peer, answered bool, took time.Duration) {
	if answered {
		m.deadlines.noteAnswer(server)
	}
	m.meter.Asked(server, answered, took)
}

// isTooSlow reports whether a context has ended because a server was waited for long enough. Else nobody waits any more, which says
// nothing about the server.
func isTooSlow(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errTooSlow) }
