// Package dnssec breaks the signatures of zones on real servers, and has every SyncStatus judged by two validating resolvers that share
// nothing with the product: unbound, and delv of BIND. It needs no cluster: it runs the API server's code between objects that it declares
// and servers on loopback. docs/truth.md describes what is judged and what was found.
package dnssec

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/lockstep-dns/lockstep/apiserver/listing"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

var (
	seed   = flag.Uint64("seed", 1, "what decides the zones and the faults")
	faults = flag.Int("faults", 60, "how many faults there are")
	only   = flag.String("faults-of", "", "the kinds of faults, separated by commas; by default all")
	limit  = flag.Duration("limit", 0, "after how long to begin no more faults; 0 is no limit")
)

const (
	// notice is how long before signatures expire the API server says so by default.
	notice = 72 * time.Hour
	// soon is how long a watch may take to name a fault, patience how long it is waited for.
	soon, patience = 5 * time.Second, 30 * time.Second
	// worlds and serversOfEach are how many faults there are at the same time, at most.
	worlds, serversOfEach = 2, 3
)

// Random faults of DNSSEC, several at once: nothing is Secure that validating resolvers reject, nothing Bogus that they accept, and a watch
// names soon what they reject.
func TestDNSSECFaults(t *testing.T) {
	kinds := slices.Clone(allKinds)
	if *only != "" {
		kinds = slices.DeleteFunc(kinds, func(k kind) bool { return !slices.Contains(strings.Split(*only, ","), k.name) })
	}
	if len(kinds) == 0 {
		t.Fatalf("there is no kind of %q", *only)
	}
	var r report
	var next atomic.Int64
	began := time.Now()
	all := make([]*world, worlds)
	for i := range all {
		all[i] = newWorld(t, fmt.Sprintf("world %d", i), rand.New(rand.NewPCG(*seed, uint64(i))), serversOfEach)
	}
	var workers sync.WaitGroup
	for _, w := range all {
		for _, s := range w.servers {
			workers.Go(func() {
				for n := next.Add(1); n <= int64(*faults) && (*limit == 0 || time.Since(began) < *limit); n = next.Add(1) {
					random := rand.New(rand.NewPCG(*seed, uint64(1000+n)))
					k := kinds[(int(n)-1+int(*seed))%len(kinds)]
					(&attempt{fault: &fault{world: w, server: s, random: random}, kind: k, number: n, report: &r}).run()
				}
			})
		}
	}
	workers.Wait()
	r.print(t)
}

// attempt is one fault and what is judged of it.
type attempt struct {
	*fault
	kind   kind
	number int64
	report *report
}

func (a *attempt) run() {
	if a.kind.above {
		a.world.mu.Lock()
		defer a.world.mu.Unlock()
	} else {
		a.world.mu.RLock()
		defer a.world.mu.RUnlock()
	}
	a.kind.begin(a.fault)
	if a.effective.IsZero() {
		a.effective = time.Now()
	}
	first, ok := a.facts(true)
	if ok {
		a.checkKind(first)
		a.awaitWatch(first)
		got := a.askAll()
		second, same := a.facts(false)
		if same {
			a.compare(first, second, got)
		}
	}
	a.end()
	a.recover()
	a.report.note(a.kind.name, func(y *tally) { y.faults++ })
}

func (a *attempt) errorf(format string, args ...any) {
	a.Errorf("fault %d, %s on %s of %s (%s): %s", a.number, a.kind.name, a.server.name, a.world.name, a.what, fmt.Sprintf(format, args...))
}

// facts is what the judges make of the server's answers. What they do not agree about is left out.
func (a *attempt) facts(both bool) (map[rrset]opinion, bool) {
	asked := map[syncv1.Security]bool{}
	unbounds, delvs, err := a.server.judges.ask(allQuestions(), func(_ rrset, o opinion) bool {
		first := both && !asked[o.security] // delv takes seconds to give up.
		asked[o.security] = true
		return first
	})
	if err != nil {
		a.errorf("%v", err)
		return nil, false
	}
	for q, security := range delvs {
		if o := unbounds[q]; o.security != security {
			a.Logf("fault %d, %s (%s): %s is %s (%d) for unbound, %s for delv", a.number, a.kind.name, a.what, q, o.security, o.cause, security)
			a.report.note(a.kind.name, func(y *tally) { y.disputed++ })
			delete(unbounds, q)
		}
	}
	return unbounds, true
}

// checkKind proves that the fault is one.
func (a *attempt) checkKind(facts map[rrset]opinion) {
	want, found := cmp.Or(a.kind.want, syncv1.SecurityBogus), false
	if want == syncv1.SecurityExpiring {
		want = syncv1.SecuritySecure
	}
	for _, o := range facts {
		found = found || o.security == want
		if o.security != want && a.kind.want != "" {
			a.errorf("judges say %s", o.security)
		}
	}
	if !found && len(facts) == len(allQuestions()) { // A busy machine can be too slow for a judge.
		a.errorf("judges do not say %s: %v", want, facts)
	}
}

// isBogus reports whether a question that decides about an object is answered with what resolvers reject.
func isBogus(object string, facts map[rrset]opinion) bool {
	return slices.ContainsFunc(questions[object], func(q rrset) bool { return facts[q].security == syncv1.SecurityBogus })
}

// awaitWatch waits until a watch names what is Bogus, or Expiring.
func (a *attempt) awaitWatch(facts map[rrset]opinion) {
	for object := range questions {
		want := syncv1.SecurityBogus
		if a.kind.want == syncv1.SecurityExpiring || a.kind.want == syncv1.SecurityInsecure {
			want = a.kind.want
		} else if !isBogus(object, facts) {
			continue
		}
		at, ok := a.await(object, func(s said) bool { return s.security == want })
		if !ok {
			a.errorf("the watch does not call %s %s: %+v; judges say %v", object, want, a.last(object, a.server.name), facts)
			a.report.note(a.kind.name, func(y *tally) { y.unnamed++ })
			continue
		}
		a.report.note(a.kind.name, func(y *tally) { y.named = append(y.named, max(0, at.Sub(a.effective))) })
	}
}

// await waits until a watch says something of an object on the server, and returns since when it does.
func (a *attempt) await(object string, is func(said) bool) (time.Time, bool) {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var at time.Time
		for _, s := range a.since(object, a.server.name, time.Time{}) {
			if !is(s) {
				at = time.Time{}
			} else if at.IsZero() {
				at = s.at
			}
		}
		if !at.IsZero() {
			return at, true
		}
		if time.Now().After(deadline) {
			return at, false
		}
	}
}

// claim is what a status says of the server.
type claim struct {
	by, object string
	row        syncv1.ServerStatus
}

// askAll gets every object, and lists them.
func (a *attempt) askAll() (all []claim) {
	for object := range questions {
		row, err := a.get(object, a.server)
		if err != nil {
			a.errorf("%v", err)
			continue
		}
		all = append(all, claim{"GET", object, row})
	}
	list, err := a.storage.List(requestContext(), &internalversion.ListOptions{})
	if err != nil {
		a.errorf("%v", err)
		return all
	}
	for i := range list.(*listing.List).Items {
		s := &list.(*listing.List).Items[i]
		if _, ours := questions[s.Name]; ours {
			all = append(all, claim{"LIST", s.Name, rowOf(s, a.server.name)})
		}
	}
	for object := range questions {
		last := a.last(object, a.server.name)
		all = append(all, claim{"WATCH", object, syncv1.ServerStatus{Security: last.security, Message: last.message}})
	}
	return all
}

// compare holds claims against facts that are the same before and after.
func (a *attempt) compare(before, after map[rrset]opinion, claims []claim) {
	var y tally
	anyBogus := slices.ContainsFunc(allQuestions(), func(q rrset) bool { return after[q].security == syncv1.SecurityBogus })
	for _, c := range claims {
		y.rows++
		decided := true
		worst := syncv1.SecuritySecure
		for _, q := range questions[c.object] {
			decided = decided && before[q].security != "" && before[q].security == after[q].security
			if worst == syncv1.SecuritySecure || after[q].security == syncv1.SecurityBogus {
				worst = after[q].security
			}
		}
		claimsSecure := c.row.Security == syncv1.SecuritySecure || c.row.Security == syncv1.SecurityExpiring
		switch {
		case !decided || c.row.Security == syncv1.SecurityUnknown:
			y.undecided++
		case claimsSecure && worst == syncv1.SecurityBogus:
			y.falseSecure++
			a.errorf("%s of %s is falsely %s; judges say %v", c.by, c.object, c.row.Security, after)
		case c.row.Security == syncv1.SecurityBogus && worst != syncv1.SecurityBogus && !(c.object == zoneObject && anyBogus):
			y.falseBogus++
			a.errorf("%s of %s is falsely Bogus: %s; judges say %v", c.by, c.object, c.row.Message, after)
		case claimsSecure != (worst == syncv1.SecuritySecure) && c.row.Security != syncv1.SecurityBogus:
			y.others++
			a.errorf("%s of %s says %s (%s); judges say %v", c.by, c.object, c.row.Security, c.row.Message, after)
		}
	}
	a.report.note(a.kind.name, func(of *tally) { of.add(&y) })
}

// recover waits until everything is right again. What a request says at once has to be right, too.
func (a *attempt) recover() {
	ended := time.Now()
	for object := range questions {
		if row, err := a.get(object, a.server); err != nil || row.Security == syncv1.SecurityBogus {
			if facts, ok := a.facts(false); ok && !isBogus(object, facts) {
				a.errorf("%s is falsely Bogus after its end: %s", object, row.Message)
				a.report.note(a.kind.name, func(y *tally) { y.falseBogus++ })
			}
		}
		if at, ok := a.await(object, func(s said) bool { return s.security == syncv1.SecuritySecure }); ok {
			a.report.note(a.kind.name, func(y *tally) { y.recovered = append(y.recovered, max(0, at.Sub(ended))) })
		} else {
			a.errorf("the watch does not call %s Secure again: %+v", object, a.last(object, a.server.name))
		}
	}
}
