package ask

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

const (
	// pathAge is how old the answer on a path about a zone may be, as long as the path answers.
	pathAge = 30 * time.Second
	// badPathAge is how often a further path that does not answer is asked while somebody watches.
	badPathAge = 2 * time.Second
	// pathProbe is how often a path that answers is asked about one of its zones, for all.
	pathProbe = time.Second
	// pathMargin is for how long after the deadline a reader waits for a path. Where a question that began before the reader came gets no
	// answer, that leaves no time for another: what it shows counts, and says when it was asked.
	pathMargin = 250 * time.Millisecond
	// pathQuestions is how many questions are under way on a path.
	pathQuestions = 16
	// furtherWait is how long a reader waits for the first answers on further paths: many of the addresses cannot be reached from here.
	furtherWait = 300 * time.Millisecond
	// furtherConnections is how many addresses that a namespace has published are asked at the same time.
	furtherConnections = 32
)

// AskPaths asks the Services of some zones' instances as clients do. A path that answers is asked about one zone each second, and
// about each zone now and then; about those without an answer whenever somebody wants to know, as of since or later. With a zero since
// it is asked only about zones that it has never been asked about.
func (a *Asker) AskPaths(ctx context.Context, zones map[*desired.Zone]bool, since time.Time) {
	onPath := map[syncstatus.Path][]string{}
	for z := range zones {
		for _, p := range syncstatus.PathsTo(z.Servers) {
			onPath[p] = append(onPath[p], z.Declared.ZoneName())
		}
	}
	var wg sync.WaitGroup
	for p, names := range onPath {
		wg.Go(func() { a.askPath(ctx, p, names, since) })
	}
	wg.Wait()
}

func (a *Asker) askPath(ctx context.Context, p syncstatus.Path, zones []string, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline+pathMargin)
	defer cancel()
	due, oldest := a.dueOnPath(p, zones, since)
	if oldest != "" && !a.askZoneOnPath(ctx, p, oldest, since) { // Which other zones get no answer now?
		due = slices.Concat([]string{oldest}, slices.DeleteFunc(slices.Clone(zones), func(zone string) bool { return zone == oldest }))
	}
	if len(due) > 0 {
		a.askZonesOnPath(ctx, p, due, since)
	}
}

// dueOnPath lists the zones that a path has to be asked about or, if there are none, the one that it was asked about the longest ago,
// unless it has answered for another one since a moment ago.
func (a *Asker) dueOnPath(p syncstatus.Path, zones []string, since time.Time) (due []string, oldest string) {
	var first, last time.Time
	for _, zone := range zones {
		o, asked := a.answers.OnPath(p, zone)
		isBad := asked && syncstatus.PathState(o) != syncv1.StateInSync
		switch {
		case !asked, !since.IsZero() && (isBad && o.At.Before(since) || time.Since(o.At) > pathAge):
			due = append(due, zone)
		case oldest == "" || o.At.Before(first):
			oldest, first = zone, o.At
		}
		if o.At.After(last) {
			last = o.At
		}
	}
	if len(due) > 0 || since.IsZero() || time.Since(last) < pathProbe {
		oldest = ""
	}
	return due, oldest
}

// pathQuestion is a question for a zone on a path.
type pathQuestion struct {
	syncstatus.Path
	zone string
}

// askZonesOnPath asks for some zones on a path. Where the first question gets no reply at all, the others would get none either.
func (a *Asker) askZonesOnPath(ctx context.Context, p syncstatus.Path, zones []string, since time.Time) {
	a.askZoneOnPath(ctx, p, zones[0], since)
	if ctx.Err() != nil {
		return
	}
	if o, _ := a.answers.OnPath(p, zones[0]); o.Rcode == observe.NoReply {
		for _, zone := range zones[1:] {
			a.answers.KeepOnPath(p, zone, o)
		}
		return
	}
	var wg sync.WaitGroup
	turns := make(chan struct{}, pathQuestions)
	for _, zone := range zones[1:] {
		turns <- struct{}{}
		wg.Go(func() {
			a.askZoneOnPath(ctx, p, zone, since)
			<-turns
		})
	}
	wg.Wait()
}

// askZoneOnPath asks for one zone on a path unless that was done at since or later, and reports whether it was answered.
func (a *Asker) askZoneOnPath(ctx context.Context, p syncstatus.Path, zone string, since time.Time) bool {
	isAsked := func() bool { o, asked := a.answers.OnPath(p, zone); return asked && !o.At.Before(since) }
	a.pathQuestions.await(ctx, pathQuestion{p, zone}, isAsked, func(ctx context.Context) {
		ctx = outbound.WithAccount(ctx, a.options.Gate.Instances(p.Namespace))
		a.answers.KeepOnPath(p, zone, observe.AskAsClient(ctx, p.Addr, zone, p.TCP, a.options.Deadline))
	})
	return a.isAnsweredOn(p, zone)
}

func (a *Asker) isAnsweredOn(p syncstatus.Path, zone string) bool {
	o, asked := a.answers.OnPath(p, zone)
	return asked && syncstatus.PathState(o) == syncv1.StateInSync
}

// askPathsAgain asks once more where a path has refused a zone, or did not know it, that all servers have shown to serve since.
func (a *Asker) askPathsAgain(ctx context.Context, zones map[*desired.Zone]bool) {
	again := maps.Clone(zones)
	maps.DeleteFunc(again, func(z *desired.Zone, _ bool) bool { return !a.isRefusedOnPath(z) })
	if len(again) > 0 {
		a.AskPaths(ctx, again, time.Now())
	}
}

func (a *Asker) isRefusedOnPath(z *desired.Zone) bool {
	zone := z.Declared.ZoneName()
	isDown := func(s observe.Server) bool {
		o := a.answers.Full(evaluate.PlaceOf(s, zone))
		return s.Addr.IsValid() && (o == nil || !o.Authoritative)
	}
	return !slices.ContainsFunc(z.Servers, isDown) && slices.ContainsFunc(syncstatus.PathsTo(z.Servers), func(p syncstatus.Path) bool {
		o, asked := a.answers.OnPath(p, zone)
		return asked && IsRefusal(syncstatus.PathState(o))
	})
}

// RepeatFurther asks again on the further paths to the zones that somebody has requested by name.
func (a *Asker) RepeatFurther(ctx context.Context, zones map[*desired.Zone]bool) {
	now := time.Now()
	for z := range zones {
		paths := a.answers.FurtherPaths(z.Key)
		if len(paths) == 0 {
			continue
		}
		known := a.evaluator.Judge(z, time.Time{}, false).SOAs()
		go a.askOnFurther(ctx, z, paths, known, func(o observe.Observation) time.Time {
			if syncstatus.PathState(o) == syncv1.StateInSync && slices.Contains(known, o.SOA) {
				return now.Add(-pathAge)
			}
			return now.Add(-badPathAge)
		})
	}
}

// IsRefusal reports whether the server of a path does not serve the zone, or not to everybody.
func IsRefusal(s syncv1.ServerState) bool {
	return s != syncv1.StateInSync && s != syncv1.StateUnreachable
}

// Vantage asks from another place than the API server's.
type Vantage interface {
	Name() string
	// Ask asks addresses for a zone's SOA as clients ask. The answers are in the order of the questions, each with a time and, if
	// there was none, with an error.
	Ask(ctx context.Context, zone string, questions []vantage.Question) []observe.Observation
}

// AskFurther asks for the zones among some objects on all other paths to them. Answers may be a moment older than since. It waits a
// little for those that were never asked; what comes later is known to the next reader.
func (a *Asker) AskFurther(ctx context.Context, subjects []*desired.Subject, judgements map[*desired.Zone]*syncstatus.Evaluation, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, furtherWait)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range subjects {
		if s == nil || s.Key.Kind != subject.ZoneKind.Kind {
			continue
		}
		var parent *syncstatus.Evaluation
		if len(s.Zones) > 1 {
			parent = judgements[s.Zones[1]]
		}
		j := judgements[s.Zones[0]]
		due := func(observe.Observation) time.Time { return since.Add(-pathProbe) }
		wg.Go(func() { a.askOnFurther(ctx, s.Zones[0], j.FurtherPaths(parent), j.SOAs(), due) })
	}
	wg.Wait()
}

// askOnFurther asks for a zone on some further paths, unless the last answer is from due or later. It waits where there was none.
func (a *Asker) askOnFurther(ctx context.Context, z *desired.Zone, paths []syncstatus.Path, known []rrset.SOA, due func(observe.Observation) time.Time) {
	a.answers.KeepFurtherPaths(z.Key, paths)
	zone := z.Declared.ZoneName()
	now := time.Now()
	var wg sync.WaitGroup
	start := func(wait bool, ask func(context.Context)) {
		if wait {
			wg.Go(func() { ask(ctx) })
		} else {
			go ask(context.WithoutCancel(ctx))
		}
	}
	fromVantages, isNew := map[string][]syncstatus.Path{}, map[string]bool{}
	for _, p := range paths {
		last, asked := a.answers.OnFurther(p, zone)
		since := due(last.Observation)
		isAsked := func() bool { o, ok := a.answers.OnFurther(p, zone); return ok && !o.At.Before(since) }
		switch {
		case isAsked():
		case p.Vantage != "":
			fromVantages[p.Vantage], isNew[p.Vantage] = append(fromVantages[p.Vantage], p), isNew[p.Vantage] || !asked
		default:
			ask := func(ctx context.Context) {
				a.pathQuestions.await(ctx, pathQuestion{p, zone}, isAsked, func(ctx context.Context) {
					ctx = outbound.WithAccount(ctx, a.options.Gate.Account(z.Key.Namespace, "the published name servers", furtherConnections))
					a.answers.KeepFurther(p, zone, syncstatus.PathAnswer{Observation: observe.AskWho(ctx, p.Addr, zone, p.TCP, a.options.Deadline), Known: known})
				})
			}
			start(!asked, ask)
		}
	}
	for _, v := range a.options.Vantages {
		if paths := fromVantages[v.Name()]; len(paths) > 0 {
			start(isNew[v.Name()], func(ctx context.Context) { a.askVantage(ctx, v, zone, paths, known, now) })
		}
	}
	wg.Wait()
}

// askVantage has a vantage ask for a zone, as of since or later. Who wants to know at the same time shares the answers.
func (a *Asker) askVantage(ctx context.Context, v Vantage, zone string, paths []syncstatus.Path, known []rrset.SOA, since time.Time) {
	isAsked := func() bool {
		return !slices.ContainsFunc(paths, func(p syncstatus.Path) bool { o, ok := a.answers.OnFurther(p, zone); return !ok || o.At.Before(since) })
	}
	of := pathQuestion{syncstatus.Path{Vantage: v.Name(), Namespace: paths[0].Namespace}, zone}
	a.pathQuestions.await(ctx, of, isAsked, func(ctx context.Context) {
		questions := make([]vantage.Question, len(paths))
		for i, p := range paths {
			questions[i] = vantage.Question{Address: p.Addr, TCP: p.TCP}
		}
		for i, o := range v.Ask(ctx, zone, questions) {
			a.answers.KeepFurther(paths[i], zone, syncstatus.PathAnswer{Observation: o, Known: known})
		}
	})
}
