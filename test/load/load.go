// Package load asks DNS servers all the time, as resolvers do, while somebody replaces the servers, and counts what resolvers got. A
// resolver asks one server, then the others, and begins again until it gives up: a query is lost when it does. Integration tests, the chart's
// tests and the benchmark of patch releases call it.
package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/kube"
)

const (
	// pauseBetween is the time between two queries of a resolver. named limits how often a network gets the same answer in a second: a faster
	// load would ask for each answer over TCP, with a connection of its own.
	pauseBetween = 10 * time.Millisecond
	// tryTimeout is how long a resolver waits for an answer to one try, patience how long it tries all servers again and again before
	// its client gets no answer. Resolvers take 10 to 30 seconds.
	tryTimeout = time.Second
	patience   = 12 * time.Second
	// A resolver that has tried all servers in vain waits before it does so again, longer each time.
	firstBackoff, longestBackoff = 100 * time.Millisecond, 2 * time.Second
)

// Question is an A record and the address that is the right answer.
type Question struct{ Name, Want string }

// Load is what resolvers see that ask a question all the time.
type Load struct {
	question Question
	cancel   context.CancelFunc
	running  sync.WaitGroup
	stalls   *StallClock

	mu     sync.Mutex
	result Result
}

// Result is what resolvers got until the end of a load.
type Result struct {
	Queries int
	// Unanswered counts, by server, the tries that it did not answer.
	Unanswered map[string]int
	// Lost are the queries that no server answered, Wrong the answers that were not as they should.
	Lost, Wrong []string
}

// Start has resolvers ask servers, "IP:port" by name, until End is called or ctx ends. There is a resolver for each server, which asks it first and the
// others if it does not answer.
func Start(ctx context.Context, servers map[string]string, question Question) *Load {
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{question: question, cancel: cancel, stalls: NewStallClock(ctx), result: Result{Unanswered: map[string]int{}}}
	names := slices.Sorted(maps.Keys(servers))
	for n := range names {
		order := slices.Concat(names[n:], names[:n])
		l.running.Go(func() {
			for ctx.Err() == nil {
				l.ask(ctx, servers, order)
				time.Sleep(pauseBetween)
			}
		})
	}
	return l
}

// End ends the load and returns what resolvers got.
func (l *Load) End() Result {
	l.cancel()
	l.running.Wait()
	return l.result
}

// ask asks as a resolver does, and notes what came back. Time in which the machine did not run us does not count as patience.
func (l *Load) ask(ctx context.Context, servers map[string]string, order []string) {
	began := time.Now()
	server, answer, err := resolve(ctx, servers, order, l.question.Name, l.stalls, l.noteSilence)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.result.Queries++
		l.result.Lost = append(l.result.Lost, fmt.Sprintf("asked at %s, for %s: %v", began.Format(time.StampMilli), time.Since(began).Round(time.Millisecond), err))
	default:
		l.result.Queries++
		if answer != l.question.Want {
			l.result.Wrong = append(l.result.Wrong, fmt.Sprintf("%s: %s", server, answer))
		}
	}
}

func (l *Load) noteSilence(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result.Unanswered[server]++
}

// Resolve asks servers for an A record in the order of their names, and again, until one answers or a resolver would give up.
func Resolve(ctx context.Context, servers map[string]string, name string) (answer string, err error) {
	_, answer, err = resolve(ctx, servers, slices.Sorted(maps.Keys(servers)), name, nil, func(string) {})
	return answer, err
}

// resolve tells silent of each server that does not answer.
func resolve(ctx context.Context, servers map[string]string, order []string, name string, stalls *StallClock, silent func(server string)) (server, answer string, err error) {
	began := time.Now()
	for pause := firstBackoff; ; pause = min(2*pause, longestBackoff) {
		var errs []error
		for _, server := range order {
			answer, err := Ask(servers[server], name)
			if ctx.Err() != nil {
				return "", "", ctx.Err()
			}
			if err == nil {
				return server, answer, nil
			}
			silent(server)
			errs = append(errs, fmt.Errorf("%s: %w", server, err))
		}
		if time.Since(began) > patience+stalls.Since(began) {
			return "", "", errors.Join(errs...)
		}
		time.Sleep(pause)
	}
}

// Ask asks a server once for an A record. Any answer with another content than an address is described.
func Ask(address, name string) (answer string, err error) {
	reply, err := kube.Query(address, name, dns.TypeA, tryTimeout)
	if err != nil {
		return "", err
	}
	if len(reply.Answer) == 1 {
		if a, ok := reply.Answer[0].(*dns.A); ok {
			return a.A.String(), nil
		}
	}
	return fmt.Sprintf("%s with %d records", dns.RcodeToString[reply.Rcode], len(reply.Answer)), nil
}

// String has the numbers.
func (r Result) String() string {
	return fmt.Sprintf("%d queries; %d wrong answers; %d lost; tries that a server did not answer: %v", r.Queries, len(r.Wrong), len(r.Lost), r.Unanswered)
}

// Err says what resolvers' clients noticed: nil if each query had the right answer, and there was one.
func (r Result) Err() error {
	var errs []error
	if len(r.Lost) > 0 {
		errs = append(errs, fmt.Errorf("no server answered: %q", r.Lost[:min(len(r.Lost), 5)]))
	}
	if len(r.Wrong) > 0 {
		errs = append(errs, fmt.Errorf("wrong answers: %q", r.Wrong[:min(len(r.Wrong), 5)]))
	}
	if r.Queries == 0 {
		errs = append(errs, errors.New("nothing was asked"))
	}
	return errors.Join(errs...)
}
