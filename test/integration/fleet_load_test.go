package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// queryLoad is what resolvers see that ask for a name all the time.
type queryLoad struct {
	name, want string
	stalls     *stallClock

	mu      sync.Mutex
	queries int
	// unanswered counts the tries that a server did not answer. lost are the queries that no server answered, wrong the answers that were
	// not as they should.
	unanswered  map[string]int
	lost, wrong []string
}

const (
	// loadPause is the time between two queries of a resolver. named limits how often a network gets the same answer in a second: a faster
	// load would ask for each answer over TCP, with a connection of its own.
	loadPause = 10 * time.Millisecond
	// tryTimeout is how long a resolver waits for an answer to one try, resolverPatience how long it tries all servers again and again before
	// its client gets no answer. Resolvers take 10 to 30 seconds.
	tryTimeout       = time.Second
	resolverPatience = 12 * time.Second
	// A resolver that has tried all servers in vain waits before it does so again, longer each time.
	firstBackoff, longestBackoff = 100 * time.Millisecond, 2 * time.Second
)

// startLoad has resolvers ask for an A record that is served by all servers, "IP:port" by name, until the returned function is called, which
// ends the load. There is a resolver for each server, which asks it first and the others if it does not answer.
func (f *fixture) startLoad(servers map[string]string, name, want string) (end func() *queryLoad) {
	ctx, cancel := context.WithCancel(f.Context())
	l := &queryLoad{name: name, want: want, stalls: newStallClock(ctx), unanswered: map[string]int{}}
	names := slices.Sorted(maps.Keys(servers))
	var wg sync.WaitGroup
	for n := range names {
		order := slices.Concat(names[n:], names[:n])
		wg.Go(func() {
			for ctx.Err() == nil {
				l.resolve(ctx, servers, order)
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

// resolve asks the servers in order, and again, until one answers or a resolver would give up. Time in which the machine did not run us
// does not count.
func (l *queryLoad) resolve(ctx context.Context, servers map[string]string, order []string) {
	began := time.Now()
	for pause := firstBackoff; ; pause = min(2*pause, longestBackoff) {
		var errs []error
		for _, server := range order {
			answer, err := askServer(servers[server], l.name)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				l.noteAnswer(server, answer)
				return
			}
			l.noteSilence(server)
			errs = append(errs, fmt.Errorf("%s: %w", server, err))
		}
		if time.Since(began) > resolverPatience+l.stalls.since(began) {
			l.noteLost(began, errors.Join(errs...))
			return
		}
		time.Sleep(pause)
	}
}

// askServer asks a server once for an A record. Any answer with another content than an address is described.
func askServer(address, name string) (answer string, err error) {
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

// askUntilAnswered asks a server for an A record until it answers, whatever it says.
func (f *fixture) askUntilAnswered(address, name string) (answer string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(context.Context) (err error) {
		answer, err = askServer(address, name)
		return err
	})
	return answer
}

func (l *queryLoad) noteAnswer(server, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries++
	if answer != l.want {
		l.wrong = append(l.wrong, fmt.Sprintf("%s: %s", server, answer))
	}
}

func (l *queryLoad) noteSilence(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered[server]++
}

func (l *queryLoad) noteLost(began time.Time, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries++
	l.lost = append(l.lost, fmt.Sprintf("asked at %s, for %s: %v", began.Format(time.StampMilli), time.Since(began).Round(time.Millisecond), why))
}

// report prints the numbers, once the load has ended, and fails the test when a server answered wrong, or a query was lost.
func (l *queryLoad) report(f *fixture, what string) {
	f.Helper()
	f.Logf("%s: %d queries; %d wrong answers; %d lost; tries that a server did not answer: %v", what, l.queries, len(l.wrong), len(l.lost), l.unanswered)
	if len(l.lost) > 0 {
		f.Errorf("%s: no server answered: %q", what, l.lost[:min(len(l.lost), 5)])
	}
	if len(l.wrong) > 0 {
		f.Errorf("%s: wrong answers: %q", what, l.wrong[:min(len(l.wrong), 5)])
	}
	if l.queries == 0 {
		f.Errorf("%s: nothing was asked", what)
	}
}

// followReplacements follows the pods of instances of one pod each. The returned function ends that. It fails the test if a pod was sent to
// its end while another instance, whose pod had been sent to its end before, had no pod that was ready yet: then two servers were away at once.
func (f *fixture) followReplacements(instances ...string) (end func()) {
	f.Helper()
	var mu sync.Mutex
	var failures []string
	ending, away := map[types.UID]bool{}, map[string]bool{}
	ctx, cancel := context.WithCancel(f.Context())
	followObjects(ctx, f.T, f.namespace, &corev1.Pod{}, func(pod *corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		instance := strings.TrimSuffix(pod.Name, "-0")
		if !slices.Contains(instances, instance) {
			return
		}
		switch {
		case pod.DeletionTimestamp == nil && status.PodReady(pod):
			delete(away, instance)
		case pod.DeletionTimestamp != nil && !ending[pod.UID]:
			ending[pod.UID], away[instance] = true, true
			if len(away) > 1 {
				failures = append(failures, fmt.Sprintf("at %s %v", pod.DeletionTimestamp.Format(time.TimeOnly), slices.Sorted(maps.Keys(away))))
			}
		}
	})
	return func() {
		f.Helper()
		cancel()
		mu.Lock()
		defer mu.Unlock()
		f.Logf("%d pods were replaced", len(ending))
		if len(failures) > 0 {
			f.Errorf("away at the same time: %q", failures)
		}
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
