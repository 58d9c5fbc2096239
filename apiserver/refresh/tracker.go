package refresh

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

const (
	// eventDebounce is how long a tracker lets events gather before it looks at them.
	eventDebounce = 5 * time.Millisecond
	// declarationHold is how long a zone whose declaration has changed waits for answers from after the change.
	declarationHold = 100 * time.Millisecond
	// pollPerServer stretches the interval of polling when a namespace has very many servers and zones.
	pollPerServer = time.Millisecond
)

// tracker keeps the verdicts of one namespace published for as long as somebody watches it. It polls the servers of its
// zones, asks them at once when something was declared or a server notified a change, and evaluates what differs without
// waiting for the slower servers. Events and answers cost what they change: only objects that may have another verdict are
// evaluated again. One goroutine owns all fields but those under mu.
//
// tracked_objects.go and tracked_zones.go hold what it follows, poll.go when servers are asked, tracker_evaluate.go when
// verdicts are evaluated and published.
type tracker struct {
	refresher *Refresher
	namespace string
	ctx       context.Context //nolint:containedctx // the tracker's own life
	cancel    context.CancelFunc

	// woken says that there is news, answersChanged that it is answers, which do not wait for more to come.
	woken, answersChanged chan struct{}
	// done receives what is to be done next with the results of background work.
	done chan func()

	mu        sync.Mutex
	interests map[*Interest]struct{}
	joining   map[*Interest]*joiningInterest
	foreign   map[desired.ZoneKey]struct{} // zones of other namespaces
	news      news
	// changed are the places with another answer.
	changed map[evaluate.Place]struct{}

	zones       map[desired.ZoneKey]*trackedZone
	zonesByName map[string]map[*trackedZone]struct{}
	// dirty are the zones of which something is to be evaluated again.
	dirty map[*trackedZone]struct{}
	// round counts rounds of evaluation; the last one began at revision evaluatedFrom.
	round         int
	evaluatedFrom uint64
	// publishAt is when verdicts are published that were debounced; zero when none was.
	publishAt time.Time
	objects   map[desired.Key]*trackedObject
	// everything is true when all objects of the namespace are followed, not only those that watches name.
	everything bool
	// serversAt is when followServers may run next, serversDue true if it will.
	serversAt  time.Time
	serversDue bool
	// pollingPaths is true while the paths to all zones are being asked.
	pollingPaths bool
	// Instances and clusters were all asked last at fleetsAsked, the largest with fleetQuestions.
	fleetsAsked    time.Time
	fleetQuestions int
}

// news is what a tracker has to look at: objects that changed, notifications of servers, pods and instances, or which
// interests there are.
type news struct {
	touched            map[desired.Key]struct{}
	notified           map[notification]struct{}
	servers, interests bool
}

func emptyNews() news {
	return news{touched: map[desired.Key]struct{}{}, notified: map[notification]struct{}{}}
}

// joiningInterest is an Interest that is not ready.
type joiningInterest struct {
	// deadline is how long to wait for servers.
	deadline time.Time
	// followed is set once the tracker follows the interest's objects.
	followed bool
}

// newTracker returns a tracker that does nothing until run.
func newTracker(ctx context.Context, r *Refresher, namespace string) *tracker {
	ctx, cancel := context.WithCancel(ctx)
	return &tracker{
		refresher: r, namespace: namespace, ctx: ctx, cancel: cancel,
		woken: make(chan struct{}, 1), answersChanged: make(chan struct{}, 1), done: make(chan func(), 64), fleetsAsked: time.Now(),
		interests: map[*Interest]struct{}{}, joining: map[*Interest]*joiningInterest{}, news: emptyNews(),
		changed: map[evaluate.Place]struct{}{}, foreign: map[desired.ZoneKey]struct{}{}, zones: map[desired.ZoneKey]*trackedZone{}, zonesByName: map[string]map[*trackedZone]struct{}{},
		dirty: map[*trackedZone]struct{}{}, objects: map[desired.Key]*trackedObject{},
	}
}

// touchObject makes the tracker look at an object again.
func (t *tracker) touchObject(key desired.Key) {
	t.addNews(func(n *news) { n.touched[key] = struct{}{} })
}

// addNews wakes the tracker.
func (t *tracker) addNews(add func(*news)) {
	t.mu.Lock()
	add(&t.news)
	t.mu.Unlock()
	wake(t.woken)
}

// AnswerChanged implements evaluate.Holder.
func (t *tracker) AnswerChanged(place evaluate.Place) {
	t.mu.Lock()
	t.changed[place] = struct{}{}
	t.mu.Unlock()
	wake(t.answersChanged)
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (t *tracker) run() {
	timer := time.NewTimer(t.refresher.options.WatchInterval)
	defer timer.Stop()
	defer t.release()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-timer.C:
			t.pollFleets(t.refresher.options.WatchInterval)
			timer.Reset(t.pollServers(t.refresher.options.WatchInterval))
			t.pollPaths()
			t.checkSignatures(time.Now())
			t.auditZones(time.Now())
		case <-t.woken:
			t.debounceEvents()
			t.handleNews()
		case <-t.answersChanged:
			t.takeAnswers()
		case handle := <-t.done:
			handle()
		}
		t.handleDone()
		t.evaluateDirty()
		t.admitInterests(time.Now())
	}
}

// inBackground does work beside everything else. What it returns is called in the tracker's goroutine.
func (t *tracker) inBackground(work func() (handle func())) {
	go func() {
		handle := work()
		select {
		case t.done <- handle:
		case <-t.ctx.Done():
		}
	}()
}

// release lets go of everything that is held elsewhere.
func (t *tracker) release() {
	t.refresher.streams.keepOnly(t, nil)
	for _, w := range t.zones {
		t.releaseAnswers(w)
	}
}

// debounceEvents lets a burst of events pass as one.
func (t *tracker) debounceEvents() {
	select {
	case <-time.After(eventDebounce):
	case <-t.ctx.Done():
	}
	select {
	case <-t.woken:
	default:
	}
}

// handleDone handles all results that are there.
func (t *tracker) handleDone() {
	for {
		select {
		case handle := <-t.done:
			handle()
		default:
			return
		}
	}
}

// takeNews takes what there is to look at, and the objects that watches name; all is true when they want all of the namespace. Everything
// is of one moment: an interest counts as followed when what it brought with it is among the news.
func (t *tracker) takeNews() (n news, named map[desired.Key]bool, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, t.news = t.news, emptyNews()
	named = map[desired.Key]bool{}
	for in := range t.interests {
		if in.scope.Object == (desired.Key{}) {
			all = true
		} else {
			named[in.scope.Object] = true
		}
	}
	for _, j := range t.joining {
		j.followed = true
	}
	return n, named, all
}

// handleNews takes over what has changed, and asks servers where that matters.
func (t *tracker) handleNews() {
	n, named, everything := t.takeNews()
	t.askNotified(n.notified)
	if n.interests && (everything != t.everything || !everything) {
		t.followAll(named, everything)
		return
	}
	for k := range n.touched {
		if k.Kind == subject.ZoneKind.Kind {
			t.refreshZone(desired.ZoneKey{Namespace: k.Namespace, Name: k.Name})
		}
		if k.Namespace == t.namespace && (everything || named[k]) {
			t.followObject(k)
		}
	}
	if n.servers {
		t.followServersInTurn(named, everything)
	}
}

// admitInterests makes interests ready as soon as what they are about is up to date. Where something changes all the time, that every
// server has answered once has to do after the deadline.
func (t *tracker) admitInterests(now time.Time) {
	isUpToDate, isAnswered := sync.OnceValue(t.isUpToDate), sync.OnceValue(t.isAnswered)
	var ready []*Interest
	t.mu.Lock()
	for in, j := range t.joining {
		upToDate := isUpToDate
		if key := in.scope.Object; key != (desired.Key{}) {
			upToDate = func() bool { return t.isObjectUpToDate(key) }
		}
		if j.followed && (upToDate() || now.After(j.deadline) && isAnswered()) {
			delete(t.joining, in)
			ready = append(ready, in)
		}
	}
	t.mu.Unlock()
	for _, in := range ready {
		in.markReady(t.namespace)
	}
}

func (t *tracker) isObjectUpToDate(key desired.Key) bool {
	o := t.objects[key]
	return o != nil && o.published || !t.refresher.informers.Exists(key)
}

// isAnswered reports whether every server has answered for each of its zones once, or was waited for long enough.
func (t *tracker) isAnswered() bool {
	for _, w := range t.zones {
		if !w.isAnswered() {
			return false
		}
	}
	return true
}

// isUpToDate reports whether the present verdict of everything in the namespace has been published.
func (t *tracker) isUpToDate() bool {
	if len(t.dirty) > 0 || !t.isAnswered() {
		return false
	}
	for _, w := range t.zones {
		if w.confirming {
			return false
		}
	}
	for key, o := range t.objects {
		if informers.DescribesServers(key.Kind) && !o.published {
			return false
		}
	}
	return true
}
