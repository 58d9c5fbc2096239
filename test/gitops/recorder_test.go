package gitops

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// askInterval is how long a recorder waits before it asks a server for a name again: less than named limits to one network.
const askInterval = 20 * time.Millisecond

// recorder asks every server of a namespace for names all the time, and counts the answers.
type recorder struct {
	*testing.T
	asking sync.WaitGroup
	mu     sync.Mutex
	counts map[question]*answers
	// stops ends the questions for a name.
	stops map[string]context.CancelFunc
}

type question struct{ name, server string }

// answers counts what a server answers to one question: an alias, other data, that there is none, that there is no such name, anything
// else, and nothing.
type answers struct{ aliases, data, noData, noNames, others, none int }

// asked returns how many questions there were.
func (a answers) asked() int { return a.aliases + a.data + a.noData + a.noNames + a.others + a.none }

// record begins to ask for names by type.
func record(t *testing.T, c client.Client, namespace string, names map[string]uint16) *recorder {
	t.Helper()
	servers, err := kube.Servers(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{T: t, counts: map[question]*answers{}, stops: map[string]context.CancelFunc{}}
	for name, rrtype := range names {
		ctx, stop := context.WithCancel(t.Context())
		r.stops[name] = stop
		for pod, address := range servers {
			counted := &answers{}
			r.counts[question{name, pod}] = counted
			r.asking.Go(func() { r.ask(ctx, counted, address, name, rrtype) })
		}
	}
	t.Cleanup(r.stop)
	return r
}

func (r *recorder) ask(ctx context.Context, counted *answers, address, name string, rrtype uint16) {
	next := time.NewTicker(askInterval)
	defer next.Stop()
	for ctx.Err() == nil {
		reply, err := kube.Query(address, name, rrtype, kube.QueryTimeout)
		if ctx.Err() != nil {
			return // Nothing is said about an answer that may have come after the end.
		}
		r.mu.Lock()
		counted.add(reply, err)
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-next.C:
		}
	}
}

func (a *answers) add(reply *dns.Msg, err error) {
	switch {
	case err != nil:
		a.none++
	case reply.Rcode == dns.RcodeNameError:
		a.noNames++
	case reply.Rcode != dns.RcodeSuccess:
		a.others++
	case len(reply.Answer) == 0:
		a.noData++
	case reply.Answer[0].Header().Rrtype == dns.TypeCNAME:
		a.aliases++
	default:
		a.data++
	}
}

// forget ends the questions for a name that is to go.
func (r *recorder) forget(name string) { r.stops[name]() }

// stop ends all questions.
func (r *recorder) stop() {
	for _, stop := range r.stops {
		stop()
	}
	r.asking.Wait()
}

// print writes a line for each name and server.
func (r *recorder) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSERVER\tQUESTIONS\tALIAS\tDATA\tNODATA\tNXDOMAIN\tOTHER\tNO ANSWER")
	byName := func(a, b question) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.server, b.server)) }
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range slices.SortedFunc(maps.Keys(r.counts), byName) {
		a := r.counts[q]
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", q.name, q.server, a.asked(), a.aliases, a.data, a.noData, a.noNames, a.others, a.none)
	}
	_ = table.Flush()
}

// requireNeverEmpty fails the test if a name was empty on a server, or never had data there.
func (r *recorder) requireNeverEmpty() {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for q, a := range r.counts {
		if a.noData+a.noNames+a.others > 0 || a.aliases+a.data == 0 {
			r.Errorf("%s was not always answered with data by %s: %+v", q.name, q.server, *a)
		}
	}
}

// requireBoth fails the test unless every server has answered with an alias for each name, and with other data.
func (r *recorder) requireBoth(names ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for q, a := range r.counts {
		if slices.Contains(names, q.name) && (a.aliases == 0 || a.data == 0) {
			r.Errorf("%s did not change its kind on %s: %+v", q.name, q.server, *a)
		}
	}
}
