package engine

import (
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// watching reads one watch.
type watching struct {
	*world
	watch.Interface
}

func (w *world) watch(q Query, o WatchOptions) watching {
	w.Helper()
	i, err := w.engine.Watch(w.ctx, q, o)
	if err != nil {
		w.Fatalf("watching: %v", err)
	}
	w.Cleanup(i.Stop)
	return watching{w, i}
}

// next is the next event but bookmarks.
func (w watching) next() (watch.EventType, *syncv1.SyncStatus) {
	w.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				w.Fatal("the watch has ended")
			}
			if e.Type != watch.Bookmark {
				return e.Type, e.Object.(*shared).SyncStatus
			}
		case <-time.After(time.Minute):
			w.Fatal("no event")
		}
	}
}

// bookmark is the next bookmark.
func (w watching) bookmark() *syncv1.SyncStatus {
	w.Helper()
	for {
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Bookmark {
				return e.Object.(*shared).SyncStatus
			}
		case <-time.After(30 * time.Second):
			w.Fatal("no bookmark")
		}
	}
}

// until reads events about one object until it is in the wanted state.
func (w watching) until(name, want string) *syncv1.SyncStatus {
	w.Helper()
	for {
		if t, s := w.next(); s.Name == name && (t == watch.Deleted && want == "gone" || t != watch.Deleted && states(s) == want) {
			return s
		}
	}
}

// quiet checks that nothing comes for a while.
func (w watching) quiet(d time.Duration) {
	w.Helper()
	select {
	case e := <-w.ResultChan():
		w.Errorf("an event that is none: %s %+v", e.Type, e.Object)
	case <-time.After(d):
	}
}

func TestWatchTellsWhatServersDo(t *testing.T) {
	w := newWorld(t)
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.apply(w.record(z, "other", "192.0.2.7"))
	w.eventually("all is in step", func() bool {
		return w.get("arecord.www").Status.InSync && w.get("arecord.other").Status.InSync && w.get("dnszone.example.test").Status.InSync
	})
	list := w.list(Query{Namespace: ns})
	events := w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: list.ResourceVersion})
	events.quiet(300 * time.Millisecond)

	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.apply(r)
	events.until("arecord.www", "Propagating primary-0=Stale secondary-0=Stale")
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	w.programmed(z, r)
	w.apply(r)
	events.until("arecord.www", "Propagating primary-0=InSync secondary-0=Stale")
	began := time.Now()
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	s := events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	t.Logf("seen in step %s after the refresh was asked for", time.Since(began).Round(time.Millisecond))

	// The resourceVersions of events can be begun from, and what was seen is not told again.
	again := w.watch(Query{Namespace: ns, Fields: fields.OneTermEqualSelector("metadata.name", "arecord.www")}, WatchOptions{ResourceVersion: s.ResourceVersion})
	again.quiet(200 * time.Millisecond)

	secondary.Pause()
	began = time.Now()
	events.until("arecord.other", "OutOfSync primary-0=InSync secondary-0=Unreachable")
	t.Logf("seen unreachable %s after it was paused", time.Since(began).Round(time.Millisecond))
	again.until("arecord.www", "OutOfSync primary-0=InSync secondary-0=Unreachable")
	secondary.Resume()
	again.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")

	w.remove(r)
	if s := again.until("arecord.www", "gone"); s.Zone != "example.test" || s.Summary.Servers != 2 {
		t.Errorf("the end of a record of zone %q on %d servers is told, want it as it was last", s.Zone, s.Summary.Servers)
	}
	events.until("arecord.www", "gone")
}

func TestWatchBegins(t *testing.T) {
	w := newWorld(t)
	lagging(t, w, bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	zones := fields.SelectorFromSet(fields.Set{"kind": "DNSZone"})

	t.Run("with what there is", func(t *testing.T) {
		for _, rv := range []string{"", "0"} {
			events := w.watch(Query{Namespace: ns, Fields: zones}, WatchOptions{ResourceVersion: rv})
			if kind, s := events.next(); kind != watch.Added || s.Name != "dnszone.example.test" {
				t.Errorf("resourceVersion %q: %s %s, want ADDED dnszone.example.test", rv, kind, s.Name)
			}
		}
	})
	t.Run("with a bookmark after what there is", func(t *testing.T) {
		for _, space := range []string{ns, "", "empty"} {
			events := w.watch(Query{Namespace: space, Fields: zones}, WatchOptions{SendInitialEvents: new(true), Bookmarks: true})
			for {
				e := <-events.ResultChan()
				if e.Type != watch.Bookmark {
					continue
				}
				b := e.Object.(*shared)
				if b.Annotations[metav1.InitialEventsAnnotationKey] != "true" || b.ResourceVersion == "" {
					t.Errorf("namespace %q: bookmark %+v does not mark the end", space, b)
				}
				break
			}
		}
	})
	t.Run("with what happened since", func(t *testing.T) {
		rv := w.list(Query{Namespace: ns}).ResourceVersion
		r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
		w.apply(r)
		added := w.record(z, "new", "192.0.2.7")
		w.apply(added)
		events := w.watch(Query{Namespace: ns, Fields: fields.SelectorFromSet(fields.Set{"kind": "ARecord"})}, WatchOptions{ResourceVersion: rv})
		seen := map[string]bool{}
		for len(seen) < 2 {
			_, s := events.next()
			seen[s.Name] = true
		}
		rv = w.list(Query{Namespace: ns}).ResourceVersion
		w.remove(added)
		w.eventually("the deletion is known", func() bool { return len(w.engine.memory.gone(0)) > 0 })
		late := w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: rv})
		late.until("arecord.new", "gone")
	})
	t.Run("never from what is forgotten", func(t *testing.T) {
		for _, rv := range []string{"1", strconv.FormatUint(revisionAt(time.Now().Add(-time.Hour)), 10), strconv.FormatUint(revisionAt(time.Now().Add(time.Hour)), 10)} {
			if _, err := w.engine.Watch(w.ctx, Query{}, WatchOptions{ResourceVersion: rv}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				t.Errorf("resourceVersion %s: %v, want gone", rv, err)
			}
		}
		if _, err := w.engine.Watch(w.ctx, Query{}, WatchOptions{ResourceVersion: "x"}); !apierrors.IsBadRequest(err) {
			t.Errorf("resourceVersion x: %v, want a bad request", err)
		}
	})
	t.Run("and leaves nothing behind", func(t *testing.T) {
		w.engine.hub.mu.Lock()
		subs := len(w.engine.hub.subs)
		w.engine.hub.mu.Unlock()
		if subs == 0 {
			return
		}
		w.eventually("all watches of finished tests are stopped", func() bool {
			w.engine.hub.mu.Lock()
			defer w.engine.hub.mu.Unlock()
			return len(w.engine.hub.subs) <= subs
		})
	})
}

// A watch that wants no initial events is told of nothing but what happens from then on.
func TestWatchBeginsNow(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Deadline = time.Minute })
	lagging(t, w, bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.apply(w.record(z, "www", "192.0.2.7"))
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	for _, rv := range []string{"", "0"} {
		events := w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: rv, SendInitialEvents: new(false)})
		w.eventually("it has begun", func() bool {
			s := events.Interface.(*subscription)
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.initial) == 0
		})
		later := w.record(z, "later"+rv, "192.0.2.7")
		w.apply(later)
		for came := false; !came; {
			kind, s := events.next()
			if came = s.Name == "arecord.later"+rv; kind == watch.Added != came {
				t.Errorf("resourceVersion %q: %s %s", rv, kind, s.Name)
			}
		}
	}
}

func TestWatchBySelector(t *testing.T) {
	w := newWorld(t)
	primary, _ := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	out := w.watch(Query{Namespace: ns, Fields: fields.ParseSelectorOrDie("status.inSync=false,kind=ARecord")}, WatchOptions{})
	out.quiet(100 * time.Millisecond)
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	if kind, s := out.next(); kind != watch.Added || s.Name != "arecord.www" {
		t.Errorf("%s %s, want ADDED arecord.www", kind, s.Name)
	}
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.7")
	for {
		if kind, s := out.next(); kind == watch.Deleted && s.Name == "arecord.www" {
			break
		}
	}
}

// A watch goes on at another replica, and whatever has been told at one can be begun from at the other.
func TestWatchGoesOnAtAnotherReplica(t *testing.T) {
	w := newWorld(t)
	lagging(t, w, bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7\ngone A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r, gone := w.record(z, "www", "192.0.2.7"), w.record(z, "gone", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.apply(gone)
	w.eventually("all is in step", func() bool { return w.get("arecord.www").Status.InSync && w.get("arecord.gone").Status.InSync })
	other := w.replica()
	w.aged()
	other.aged()
	records := Query{Namespace: ns, Fields: fields.ParseSelectorOrDie("kind=ARecord")}
	first := w.list(records)
	other.eventually("the other replica has seen everything", func() bool { return len(other.list(records).Items) == 2 })
	if second := other.list(records); second.ResourceVersion == first.ResourceVersion || len(second.ResourceVersion) < len(first.ResourceVersion) ||
		len(second.ResourceVersion) == len(first.ResourceVersion) && second.ResourceVersion < first.ResourceVersion {
		t.Errorf("a later list has resourceVersion %s, want one after %s", second.ResourceVersion, first.ResourceVersion)
	}

	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.apply(r)
	w.remove(gone)
	other.eventually("the other replica knows of the deletion", func() bool { return len(other.engine.memory.gone(0)) > 0 })
	events := other.watch(records, WatchOptions{ResourceVersion: first.ResourceVersion, Bookmarks: true})
	events.until("arecord.www", "Propagating primary-0=Stale secondary-0=Stale")
	again := other.watch(records, WatchOptions{ResourceVersion: first.ResourceVersion})
	again.until("arecord.gone", "gone")

	// A bookmark, too, is a place to go on from, here and there.
	other.engine.hub.bookmark(events.Interface.(*subscription))
	at := events.bookmark().ResourceVersion
	w.programmed(z, r)
	w.apply(r)
	for _, replica := range []*world{w, other} {
		replica.watch(records, WatchOptions{ResourceVersion: at}).until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
	}
}

// A watch that joins others begins like any other, and one with a selector is not told about what it never saw.
func TestWatchJoinsOthers(t *testing.T) {
	w := newWorld(t)
	lagging(t, w, bind.Zone{Name: "example.test.", Records: "a A 192.0.2.7\nb A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.eventually("the zone is there", func() bool { return w.get("dnszone.example.test").Zone != "" })
	w.apply(w.record(z, "a", "192.0.2.7"))
	w.apply(w.record(z, "b", "192.0.2.7"))
	one := w.watch(Query{Namespace: ns, Fields: fields.OneTermEqualSelector("metadata.name", "arecord.a")}, WatchOptions{})
	one.until("arecord.a", "InSync primary-0=InSync secondary-0=InSync")
	for range 20 {
		q := Query{Namespace: ns, Fields: fields.ParseSelectorOrDie("kind=ARecord")}
		w.eventually("both are in step", func() bool { return len(w.list(q).Items) == 2 })
		many := w.watch(q, WatchOptions{ResourceVersion: w.list(q).ResourceVersion})
		many.quiet(70 * time.Millisecond)
		many.Stop()
	}
}

func TestNobodyAsksNobodyIsAsked(t *testing.T) {
	w := newWorld(t)
	primary, _ := lagging(t, w, bind.Zone{Name: "example.test."})
	w.apply(zone("example.test", "primary", "secondary"))
	events := w.watch(Query{Namespace: ns}, WatchOptions{})
	events.until("dnszone.example.test", "InSync primary-0=InSync secondary-0=InSync")
	events.Stop()
	w.eventually("the trackers have ended", func() bool {
		w.engine.hub.mu.Lock()
		defer w.engine.hub.mu.Unlock()
		return len(w.engine.hub.trackers) == 0
	})
	w.eventually("what was asked before is answered, and nothing more is asked", func() bool {
		before := queries(t, primary)
		time.Sleep(500 * time.Millisecond)
		return queries(t, primary) == before
	})
}

// queries counts what a server has answered so far.
func queries(t *testing.T, s *bind.Server) int {
	t.Helper()
	out, err := s.Rndc("stats")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return countQueries(t, s)
}

// What changes while a server is being asked does not end the asking.
func TestWatchGoesOnAskingAfterChanges(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Deadline = 500 * time.Millisecond })
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	events := w.watch(Query{Namespace: ns}, WatchOptions{})
	events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	secondary.Pause()
	time.Sleep(150 * time.Millisecond) // A question is under way.
	for i := range 5 {
		r.Labels["turn"] = strconv.Itoa(i)
		w.apply(r)
		time.Sleep(20 * time.Millisecond)
	}
	secondary.Resume()
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	events.until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=InSync")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	events.until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
}
