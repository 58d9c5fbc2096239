package registry

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

const (
	// benchQueryRate is the API server's default.
	benchQueryRate = 2000
	benchLists     = 20
)

// questionLog counts the answers of a server by the second.
type questionLog struct {
	mu    sync.Mutex
	times []time.Time
}

func (l *questionLog) add(_ string, reply []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = append(l.times, time.Now())
	return reply, nil
}

// busiest returns the most answers in any second.
func (l *questionLog) busiest() (most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, from := 0, 0; i < len(l.times); i++ {
		for l.times[i].Sub(l.times[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// inStepAlone makes one zone of n records on one server, behind a proxy, which is read by query or by transfer.
func inStepAlone(b *testing.B, n int, byQuery bool) (*world, *bind.Server, *questionLog) {
	b.Helper()
	w := newWorld(b, func(o *testOptions) { o.QuestionRate = benchQueryRate })
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "r%d A 10.%d.%d.%d\n", i, i/62500, i/250%250, i%250)
	}
	zone := bind.Zone{Name: "example.test.", Records: lines.String()}
	if byQuery {
		zone.Extra = "allow-transfer { none; };"
	}
	server, log := bind.Start(b, bind.Options{Zones: []bind.Zone{zone}, Transfer: w.Key}), &questionLog{}
	proxy := bind.StartProxy(b, server.Addr)
	proxy.Filter(log.add)
	if byQuery {
		w.ServerByQuery("primary", v1beta1.RolePrimary, proxy.Addr)
	} else {
		w.Server("primary", v1beta1.RolePrimary, proxy.Addr)
	}
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	for i := range n {
		w.Apply(w.Record(z, fmt.Sprintf("r%d", i), fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, i%250)))
	}
	w.Eventually("all records are in sync", func() bool {
		s := w.get("dnszone.example.test")
		return s.Status.InSync && int(s.Summary.Records) == n+2
	})
	return w, server, log
}

// BenchmarkListByQuery measures lists of 10,000 records on a server that is read by query beside the same on one whose zone is
// transferred, in turns, at rest and after a change of one record each; servers are asked anew for each. It fails if the server was
// asked too much.
func BenchmarkListByQuery(b *testing.B) {
	const n = 10_000
	transfer, primary, _ := inStepAlone(b, n, false)
	query, server, log := inStepAlone(b, n, true)
	times := map[string][]time.Duration{}
	list := func(name string, w *world) {
		began := time.Now()
		l := w.list(*everythingIn(ns))
		times[name] = append(times[name], time.Since(began))
		for _, s := range l.Items {
			if s.ObjectRef.Kind == "ARecord" && !s.Status.InSync {
				b.Fatalf("%s: %s %s, row %+v", name, s.Name, states(&s), rowOf(&s))
			}
		}
	}
	for i := range benchLists {
		list("transfer", transfer)
		list("query", query)
		if i%2 == 0 {
			fakekube.Update(b, primary, "example.test.", "foreign.example.test.", fmt.Sprintf("192.0.2.%d", i))
			fakekube.Update(b, server, "example.test.", "foreign.example.test.", fmt.Sprintf("192.0.2.%d", i))
			list("transfer-changed", transfer)
			list("query-changed", query)
		}
	}
	for range b.N {
		// The figures are medians: b.N is not asked.
	}
	median := func(name string) time.Duration {
		slices.Sort(times[name])
		return times[name][len(times[name])/2]
	}
	for _, when := range []string{"", "-changed"} {
		ours, other := median("query"+when), median("transfer"+when)
		fmt.Printf("RESULT list-by-query%s ratio=%.2f ours=%s reference=%s (the same records on a server whose zone is transferred)\n",
			when, float64(ours)/float64(other), ours.Round(time.Millisecond/10), other.Round(time.Millisecond/10))
	}
	most := log.busiest()
	fmt.Printf("RESULT list-by-query-questions ratio=%.2f ours=%d reference=%d (the most questions in a second, and those allowed)\n", float64(most)/benchQueryRate, most, benchQueryRate)
	if float64(most) > math.Ceil(benchQueryRate*1.05) { // Answers that were late arrive with others.
		b.Errorf("%d questions in a second", most)
	}
}
