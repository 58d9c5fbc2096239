package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// queryLoad is what clients see that ask every server all the time, each the way a resolver does: up to three tries, of a
// second each, and a server has failed when none of them is answered.
type queryLoad struct {
	mu      sync.Mutex
	queries map[string]int
	// silent are the times in which a server did not answer, wrong the answers that were not as they should.
	silent []unansweredQuery
	wrong  []string
}

type unansweredQuery struct {
	server      string
	began, over time.Time
}

// startLoad asks servers, "IP:port" by name, for an A record until the returned function is called, which ends the load.
func (f *fixture) startLoad(servers map[string]string, name, want string) (end func() *queryLoad) {
	l := &queryLoad{queries: map[string]int{}}
	ctx, cancel := context.WithCancel(f.Context())
	var wg sync.WaitGroup
	for server, address := range servers {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				answer, err := queryServer(ctx, address, name)
				if ctx.Err() != nil {
					return
				}
				l.record(server, began, answer, want, err)
				time.Sleep(2 * time.Millisecond) // the pace of the load
			}
		})
	}
	return func() *queryLoad {
		cancel()
		wg.Wait()
		return l
	}
}

var errSilent = errors.New("no answer to three tries")

func queryServer(ctx context.Context, address, name string) (string, error) {
	c := &dns.Client{Timeout: time.Second}
	for range 3 {
		m := new(dns.Msg)
		m.SetQuestion(name, dns.TypeA)
		reply, _, err := c.ExchangeContext(ctx, m, address)
		if err == nil && reply.Truncated { // The rate of answers is limited: RFC 1123 section 6.1.3.2.
			reply, _, err = (&dns.Client{Net: "tcp", Timeout: time.Second}).ExchangeContext(ctx, m, address)
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // A closed port answers at once.
			continue
		}
		if len(reply.Answer) == 1 {
			if a, ok := reply.Answer[0].(*dns.A); ok {
				return a.A.String(), nil
			}
		}
		return fmt.Sprintf("%s with %d records", dns.RcodeToString[reply.Rcode], len(reply.Answer)), nil
	}
	return "", errSilent
}

func (l *queryLoad) record(server string, began time.Time, answer, want string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries[server]++
	switch {
	case err != nil:
		l.silent = append(l.silent, unansweredQuery{server, began, time.Now()})
	case answer != want:
		l.wrong = append(l.wrong, fmt.Sprintf("%s: %s", server, answer))
	}
}

// failed are the queries that a server did not answer while another one was away, too: the failures of servers that
// were to remain.
func (l *queryLoad) failed() []string {
	var failed []string
	for i, a := range l.silent {
		for _, b := range l.silent[i+1:] {
			if a.server != b.server && a.began.Before(b.over) && b.began.Before(a.over) {
				failed = append(failed, fmt.Sprintf("%s and %s at %s", a.server, b.server, b.began.Format(time.StampMilli)))
			}
		}
	}
	return failed
}

// report prints the numbers and fails the test when a server answered wrong, or two were away at once.
func (l *queryLoad) report(f *fixture, what string) {
	f.Helper()
	total, away := 0, map[string]int{}
	for _, n := range l.queries {
		total += n
	}
	for _, s := range l.silent {
		away[s.server]++
	}
	failed := l.failed()
	f.Logf("%s: %d queries to %d servers; %d wrong answers; %d unanswered by remaining servers; unanswered by the one being replaced: %v",
		what, total, len(l.queries), len(l.wrong), len(failed), away)
	if len(failed) > 0 {
		f.Errorf("%s: servers away at the same time: %q", what, failed[:min(len(failed), 5)])
	}
	if len(l.wrong) > 0 {
		f.Errorf("%s: wrong answers: %q", what, l.wrong[:min(len(l.wrong), 5)])
	}
	if total == 0 {
		f.Errorf("%s: nothing was asked", what)
	}
}

// services are where the Services of instances serve DNS, by instance.
func (f *fixture) services(instances ...string) map[string]string {
	f.Helper()
	addresses := map[string]string{}
	for _, name := range instances {
		var service corev1.Service
		if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, &service); err != nil {
			f.Fatal(err)
		}
		addresses[name] = service.Spec.ClusterIP + ":53"
	}
	return addresses
}
