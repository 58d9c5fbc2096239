package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	bind "github.com/lockstep-dns/lockstep/test/named"
)

// still makes the tracker of a namespace one that takes its steps when the test says so.
func (w *world) still(namespace string) *tracker {
	w.engine.hub.mu.Lock()
	defer w.engine.hub.mu.Unlock()
	t := makeTracker(w.ctx, w.engine, namespace)
	w.engine.hub.trackers[namespace] = t
	return t
}

// steps has a still tracker do what there is to do, until something is so.
func (w *world) steps(t *tracker, until func() bool) {
	w.Helper()
	deadline := time.After(time.Minute)
	for !until() {
		select {
		case <-t.woken:
			t.look()
		case a := <-t.answers:
			t.take(a)
		case a := <-t.askedFleets:
			t.takeFleet(a)
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			w.Fatal("a tracker has got stuck")
		}
		t.drain()
		t.judge()
		t.join()
	}
}

// ended waits until a stopped watch is no more.
func (w *world) ended(s *subscription) {
	w.Helper()
	w.eventually("the watch has ended", func() bool {
		w.engine.hub.mu.Lock()
		defer w.engine.hub.mu.Unlock()
		_, there := w.engine.hub.subs[s]
		return !there
	})
}

// Whatever revision a watch has been handed, it can go on from there: what somebody else has seen by then, and the watch
// was not told of, it is told then.
func TestNothingIsMissedBehindARevision(t *testing.T) {
	w := newWorld(t)
	primary, _ := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(w.record(z, "other", "192.0.2.7"))

	changes := map[string]func(*testing.T) (become string){
		"seen by a reader": func(t *testing.T) string {
			update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
			const become = "OutOfSync primary-0=Divergent secondary-0=InSync"
			w.eventually("it is seen", func() bool { return states(w.get("arecord.www")) == become })
			return become
		},
		"deleted": func(*testing.T) string {
			before := len(w.engine.memory.gone(0))
			w.remove(r)
			w.eventually("it is known to be gone", func() bool { return len(w.engine.memory.gone(0)) > before })
			return "gone"
		},
	}
	handed := map[string]func(watching) string{
		"a bookmark": func(events watching) string {
			w.engine.hub.bookmark(events.Interface.(*subscription))
			return events.bookmark().ResourceVersion
		},
		"an event": func(events watching) string {
			other := w.get("arecord.other")
			w.engine.hub.deliver([]*subscription{events.Interface.(*subscription)}, other, other, 1)
			for {
				if _, s := events.next(); s.Name == "arecord.other" {
					return s.ResourceVersion
				}
			}
		},
	}
	others := map[string]*Query{
		"alone":                        nil,
		"beside one of everything":     {Namespace: ns},
		"beside one of another object": {Namespace: ns, Fields: fields.OneTermEqualSelector("metadata.name", "arecord.other")},
	}
	for change, happens := range changes {
		for what, hand := range handed {
			for beside, q := range others {
				t.Run(fmt.Sprintf("%s, behind %s, %s", change, what, beside), func(t *testing.T) {
					update(t, primary, "example.test.", "www.example.test.", "192.0.2.7")
					w.apply(r)
					w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
					list := w.list(Query{Namespace: ns})
					tracker := w.still(ns)
					from := WatchOptions{ResourceVersion: list.ResourceVersion, Bookmarks: true}
					events := w.watch(Query{Namespace: ns}, from)
					if q != nil {
						defer w.watch(*q, from).Stop()
					}
					w.steps(tracker, func() bool { return len(tracker.joined()) > 0 && !tracker.joins() })

					become := happens(t)
					at := hand(events)
					events.Stop()
					w.ended(events.Interface.(*subscription))
					go tracker.run()
					again := w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: at})
					again.until("arecord.www", become)
					again.Stop()
					w.ended(again.Interface.(*subscription))
				})
				w.eventually("nobody watches", func() bool { _, namespaces := w.engine.hub.sizes(); return namespaces == 0 })
			}
		}
	}
}

// What a watch knows it is not told again when it goes on, although its tracker has ended with it.
func TestGoingOnTellsNothingTwice(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Deadline = time.Minute })
	lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.apply(w.record(z, "www", "192.0.2.7"))
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync && w.get("dnszone.example.test").Status.InSync })
	at := w.list(Query{Namespace: ns}).ResourceVersion
	for range 5 {
		events := w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: at, Bookmarks: true})
		sub := events.Interface.(*subscription)
		w.eventually("the watch has begun", func() bool { return !sub.begins(ns) })
		w.engine.hub.bookmark(sub)
		e := <-events.ResultChan()
		if e.Type != watch.Bookmark {
			t.Fatalf("%s %+v", e.Type, e.Object)
		}
		at = e.Object.(*shared).ResourceVersion
		events.Stop()
		w.ended(sub)
	}
}

// joins tells whether a watch has not begun yet.
func (t *tracker) joins() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.joining) > 0
}

// What comes to be in a namespace of which there was nothing when a watch of all namespaces began is told, at revisions that
// the watch has not heard.
func TestNewNamespaceIsToldAtNewRevisions(t *testing.T) {
	for name, begin := range map[string]func(*world) WatchOptions{
		"from a list":         func(w *world) WatchOptions { return WatchOptions{ResourceVersion: w.list(Query{}).ResourceVersion} },
		"with all there is":   func(*world) WatchOptions { return WatchOptions{} },
		"with nothing":        func(*world) WatchOptions { return WatchOptions{SendInitialEvents: new(false)} },
		"with nothing, empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.record(zone("example.test"), "www", "192.0.2.7")
			o := WatchOptions{SendInitialEvents: new(false)}
			if begin != nil {
				w.apply(r)
				w.eventually("the record is there", func() bool { return len(w.list(Query{}).Items) == 1 })
				o = begin(w)
			}
			o.Bookmarks = true
			events := w.watch(Query{}, o)
			sub := events.Interface.(*subscription)
			w.eventually("the watch has begun", func() bool { return !sub.begins(ns) })

			tracker := w.still("elsewhere")
			r.Namespace = "elsewhere"
			w.apply(r)
			w.eventually("the watch comes to the namespace", func() bool { return tracker.has(sub) })
			w.eventually("it is looked at", func() bool {
				tracker.look()
				return len(tracker.known) == 1
			})
			w.engine.hub.bookmark(sub)
			heard, _ := parseRevision(events.bookmark().ResourceVersion)
			w.steps(tracker, func() bool { return len(tracker.joined()) == 1 })
			kind, s := events.next()
			if rev, _ := parseRevision(s.ResourceVersion); kind != watch.Added || s.Namespace != "elsewhere" || rev <= heard {
				t.Errorf("%s %s/%s at %d after a bookmark at %d", kind, s.Namespace, s.Name, rev, heard)
			}
		})
	}
}

// A watch that goes on hears what happened in the order of revisions, however many namespaces it is from: when it breaks off
// anywhere it can go on from there.
func TestGoingOnIsInOrderOfRevisions(t *testing.T) {
	push := func(s *subscription, namespace string, revisions ...uint64) {
		for _, rev := range revisions {
			o := blank()
			o.Namespace, o.ObjectRef.Name, o.ResourceVersion = namespace, fmt.Sprint(rev), formatRevision(rev)
			s.push(watch.Modified, share(o))
		}
	}
	begun := func() *subscription {
		s, _ := newSubscription(t.Context(), everythingIn(""))
		s.from, s.initial["a"], s.initial["b"], s.bookmarks = 50, true, true, true
		push(s, "a", 100, 90, 120)
		s.initialDone("a")
		return s
	}
	s := begun()
	if events, last := s.take(); len(events) > 0 || last {
		t.Errorf("%d events are handed over before all is known", len(events))
	}
	push(s, "b", 95, 110)
	<-s.wake
	s.initialDone("b")
	select {
	case <-s.wake:
	default:
		t.Error("nobody is told that all is known")
	}
	var got []uint64
	events, _ := s.take()
	for _, e := range events {
		got = append(got, revisionOf(e))
	}
	if want := []uint64{90, 95, 100, 110, 120}; !slices.Equal(got, want) {
		t.Errorf("revisions %d, want %d", got, want)
	}

	s = begun()
	s.end(130)
	if events, last := s.take(); len(events) > 0 || !last {
		t.Errorf("a watch that ends before all is known hands over %d events, last %t", len(events), last)
	}
}

// A watcher who takes nothing does not make the queue grow by what it misses.
func TestQueueHoldsOneEventForEachObject(t *testing.T) {
	s, _ := newSubscription(t.Context(), everythingIn(""))
	const objects, turns = 10, 1000
	for turn := range uint64(turns) {
		for i := range objects {
			o := blank()
			o.ObjectRef.Name, o.ResourceVersion = fmt.Sprint(i), formatRevision(turn)
			s.push(watch.Modified, share(o))
		}
	}
	if n := len(s.queue); n > 2*objects+gaps+1 {
		t.Errorf("the queue has %d places for %d objects", n, objects)
	}
	events, _ := s.take()
	for i, e := range events {
		if o := e.Object.(*shared); revisionOf(e) != turns-1 || o.ObjectRef.Name != fmt.Sprint(i) {
			t.Errorf("event %d is of %s at %d", i, o.ObjectRef.Name, revisionOf(e))
		}
	}
	if len(events) != objects {
		t.Errorf("%d events of %d objects", len(events), objects)
	}
}

// However many namespaces are watched one after the other, what has been heard there takes little memory and is never
// less than it was.
func TestHeardIsBounded(t *testing.T) {
	var h heard
	for i := range uint64(3 * heardMost) {
		h.note(fmt.Sprint(i), i+1)
		h.note(fmt.Sprint(i), i) // not less
	}
	if len(h.in) > heardMost {
		t.Errorf("%d namespaces are told apart", len(h.in))
	}
	for i := range uint64(3 * heardMost) {
		if got := h.of(fmt.Sprint(i)); got < i+1 {
			t.Errorf("heard %d in a namespace where it was %d", got, i+1)
		}
	}
	last := uint64(3 * heardMost)
	h.note("", last+5)
	if got := h.of("any"); got != last+5 {
		t.Errorf("heard %d everywhere, want %d", got, last+5)
	}
}

// An object whose SyncStatus is still being computed when it goes is not remembered for ever.
func TestTheDeadAreForgotten(t *testing.T) {
	now := time.Now()
	m := newMemory(newRevisions(func() time.Time { return now }))
	status := blank()
	status.UID, status.Namespace = "u", ns
	status.ObjectRef.Kind, status.ObjectRef.Name = "ARecord", "www"
	meta := &metav1.ObjectMeta{Name: "www", Namespace: ns, UID: types.UID("u")}
	m.bury(objectOf(status), meta, blank())
	m.stamp(status)
	now = now.Add(buriedFor + time.Second)
	m.bury(object{Kind: "ARecord", Namespace: ns, Name: "next"}, &metav1.ObjectMeta{Name: "next", Namespace: ns, UID: "v"}, blank())
	if len(m.entries) != 0 || len(m.graves) != 1 || len(m.buried) != 1 {
		t.Errorf("%d entries, %d graves, %d burials", len(m.entries), len(m.graves), len(m.buried))
	}
}

// What this replica has seen some seconds before another one handed a watch its revision, that watch may not have been told.
func TestAnotherReplicaMayHaveBeenSlower(t *testing.T) {
	w := newWorld(t)
	w.aged()
	now, r := time.Now(), w.engine.revisions
	r.mu.Lock()
	r.now, r.last = func() time.Time { return now.Add(-clockSlack - time.Second) }, 0
	r.mu.Unlock()
	primary, _ := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.apply(w.record(z, "www", "192.0.2.7"))
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	const become = "OutOfSync primary-0=Divergent secondary-0=InSync"
	w.eventually("it is seen", func() bool { return states(w.get("arecord.www")) == become })
	elsewhere := revisionAt(now) | (r.replica ^ 1)
	w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: formatRevision(elsewhere)}).until("arecord.www", become)
}
