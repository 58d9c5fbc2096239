package refresh

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
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

const (
	// pathAge is how old the answer on a path about a zone may be, as long as the path answers.
	pathAge = 30 * time.Second
	// pathProbe is how often a path that answers is asked about one of its zones, for all.
	pathProbe = time.Second
	// pathQuestions is how many questions are under way on a path.
	pathQuestions = 16
)

// askPaths asks the Services of some zones' instances as clients do. A path that answers is asked about one zone each second, and
// about each zone now and then; about those without an answer whenever somebody wants to know, as of since or later. With a zero since
// it is asked only about zones that it has never been asked about.
func (a *asker) askPaths(ctx context.Context, zones map[*desired.Zone]bool, since time.Time) {
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

func (a *asker) askPath(ctx context.Context, p syncstatus.Path, zones []string, since time.Time) {
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
func (a *asker) dueOnPath(p syncstatus.Path, zones []string, since time.Time) (due []string, oldest string) {
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
func (a *asker) askZonesOnPath(ctx context.Context, p syncstatus.Path, zones []string, since time.Time) {
	a.askZoneOnPath(ctx, p, zones[0], since)
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
func (a *asker) askZoneOnPath(ctx context.Context, p syncstatus.Path, zone string, since time.Time) bool {
	isAsked := func() bool { o, asked := a.answers.OnPath(p, zone); return asked && !o.At.Before(since) }
	a.pathQuestions.await(ctx, pathQuestion{p, zone}, isAsked, func(ctx context.Context) {
		a.answers.KeepOnPath(p, zone, observe.AskAsClient(ctx, p.Addr, zone, p.TCP, a.options.Deadline))
	})
	return a.isAnsweredOn(p, zone)
}

func (a *asker) isAnsweredOn(p syncstatus.Path, zone string) bool {
	o, asked := a.answers.OnPath(p, zone)
	return asked && syncstatus.PathState(o) == syncv1.StateInSync
}

// askPathsAgain asks once more where a path has refused a zone, or did not know it, that all servers have shown to serve since.
func (a *asker) askPathsAgain(ctx context.Context, zones map[*desired.Zone]bool) {
	again := maps.Clone(zones)
	maps.DeleteFunc(again, func(z *desired.Zone, _ bool) bool { return !a.isRefusedOnPath(z) })
	if len(again) > 0 {
		a.askPaths(ctx, again, time.Now())
	}
}

func (a *asker) isRefusedOnPath(z *desired.Zone) bool {
	zone := z.Declared.ZoneName()
	for _, s := range z.Servers {
		if o := a.answers.Full(evaluate.PlaceOf(s, zone)); s.Addr.IsValid() && (o == nil || !o.Authoritative) {
			return false
		}
	}
	return slices.ContainsFunc(syncstatus.PathsTo(z.Servers), func(p syncstatus.Path) bool {
		o, asked := a.answers.OnPath(p, zone)
		return asked && isRefusal(syncstatus.PathState(o))
	})
}

// pollPaths asks the paths to all followed zones, as far as it is time.
func (t *tracker) pollPaths() {
	if t.pollingPaths {
		return
	}
	t.pollingPaths = true
	zones := map[*desired.Zone]bool{}
	for _, w := range t.zones {
		zones[w.zone] = true
	}
	t.inBackground(func() func() {
		t.refresher.askPaths(t.ctx, zones, time.Now())
		return func() {
			t.pollingPaths = false
			for z := range zones {
				t.takePaths(z.Key)
			}
		}
	})
}

// askPathsTo asks the paths to a zone of which something has changed, and once more if more changes meanwhile.
func (t *tracker) askPathsTo(w *trackedZone) {
	if w.pathsAgain = w.askingPaths; w.askingPaths || len(syncstatus.PathsTo(w.zone.Servers)) == 0 {
		return
	}
	w.askingPaths = true
	z := w.zone
	t.inBackground(func() func() {
		t.refresher.askPaths(t.ctx, map[*desired.Zone]bool{z: true}, time.Now())
		return func() {
			w.askingPaths = false
			if w.pathsAgain {
				t.askPathsTo(w)
			}
			t.takePaths(z.Key)
		}
	})
}

// takePaths looks at the present answers on the paths to a zone.
func (t *tracker) takePaths(key desired.ZoneKey) {
	w := t.zones[key]
	if w == nil {
		return
	}
	var now []syncv1.ServerState
	for _, p := range syncstatus.PathsTo(w.zone.Servers) {
		if o, asked := t.refresher.answers.OnPath(p, w.zone.Declared.ZoneName()); asked {
			now = append(now, syncstatus.PathState(o))
		}
	}
	if !slices.Equal(now, w.onPaths) {
		w.onPaths, w.all = now, true
	}
	t.evaluateLater(w)
}

// isRefusal reports whether the server of a path does not serve the zone, or not to everybody.
func isRefusal(s syncv1.ServerState) bool {
	return s != syncv1.StateInSync && s != syncv1.StateUnreachable
}
