package integration

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
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

// unansweredQuery is one whose tries were all in vain, the last for err. From the first to the last of them the server was away; how long
// it was afterwards, nobody knows.
type unansweredQuery struct {
	server      string
	first, last time.Time
	err         error
}

// loadPause is the time between two queries to a server. named limits how often a network gets the same answer in a second: a faster load
// would ask for each answer over TCP, with a connection of its own.
const loadPause = 10 * time.Millisecond

// startLoad asks servers, "IP:port" by name, for an A record until the returned function is called, which ends the load.
func (f *fixture) startLoad(servers map[string]string, name, want string) (end func() *queryLoad) {
	l := &queryLoad{queries: map[string]int{}}
	ctx, cancel := context.WithCancel(f.Context())
	var wg sync.WaitGroup
	for server, address := range servers {
		wg.Go(func() {
			for ctx.Err() == nil {
				first := time.Now()
				answer, last, err := queryServer(address, name)
				if ctx.Err() != nil {
					return
				}
				l.record(unansweredQuery{server, first, last, err}, answer, want)
				time.Sleep(loadPause)
			}
		})
	}
	return func() *queryLoad {
		cancel()
		wg.Wait()
		return l
	}
}

// queryServer returns the answer and when it asked for it, or why the last of three tries had none.
func queryServer(address, name string) (answer string, at time.Time, err error) {
	for range 3 {
		at = time.Now()
		var reply *dns.Msg
		if reply, err = kube.Query(address, name, dns.TypeA, time.Second); err != nil {
			time.Sleep(100 * time.Millisecond) // A closed port answers at once.
			continue
		}
		if len(reply.Answer) == 1 {
			if a, ok := reply.Answer[0].(*dns.A); ok {
				return a.A.String(), at, nil
			}
		}
		return fmt.Sprintf("%s with %d records", dns.RcodeToString[reply.Rcode], len(reply.Answer)), at, nil
	}
	return "", at, err
}

func (l *queryLoad) record(q unansweredQuery, answer, want string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries[q.server]++
	switch {
	case q.err != nil:
		l.silent = append(l.silent, q)
	case answer != want:
		l.wrong = append(l.wrong, fmt.Sprintf("%s: %s", q.server, answer))
	}
}

// failed are the queries that a server did not answer while another one was away, too: the failures of servers that
// were to remain.
func (l *queryLoad) failed() []string {
	var failed []string
	for i, a := range l.silent {
		for _, b := range l.silent[i+1:] {
			if a.server != b.server && a.first.Before(b.last) && b.first.Before(a.last) {
				failed = append(failed, fmt.Sprintf("%s and %s at %s: %v, %v", a.server, b.server, b.first.Format(time.StampMilli), a.err, b.err))
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
