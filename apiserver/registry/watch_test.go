package registry

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// watching reads one watch.
type watching struct {
	*world
	*store.Watcher
}

func (w *world) tryWatch(q query, o store.WatchOptions) (*store.Watcher, error) {
	q.setDefaults()
	return w.verdicts.startWatch(w.ctx, &q, o)
}

func (w *world) watch(q query, o store.WatchOptions) watching {
	w.Helper()
	i, err := w.tryWatch(q, o)
	if err != nil {
		w.Fatalf("watching: %v", err)
	}
	w.Cleanup(i.Stop)
	return watching{w, i}
}

// bookmark returns the resourceVersion of a bookmark, and calls seen with the events before it.
func (w watching) bookmark(seen func(watch.Event)) string {
	w.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		w.Bookmark() // There is none before the watch has begun.
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Bookmark {
				return e.Object.(*store.Object).ResourceVersion
			}
			seen(e)
		case <-time.After(5 * time.Millisecond):
		}
	}
	w.Fatal("the watch does not begin")
	return ""
}

// begun waits until a watch has begun of which no other event is expected. It returns a resourceVersion to go on from.
func (w watching) begun() string {
	w.Helper()
	return w.bookmark(func(e watch.Event) { w.Fatalf("%s %+v before anything has happened", e.Type, e.Object) })
}

// ended waits until a stopped watch is no more.
func (w watching) ended() {
	w.Helper()
	w.Stop()
	for range w.ResultChan() {
	}
}

// afterDeletion returns once the deletion of an object is known: events of a kind are handled one after the other.
func (w *world) afterDeletion(key desired.Key, remove func()) {
	w.Helper()
	remove()
	zone := fakekube.Zone("next.test")
	zone.Namespace = "next"
	next := client.Object(zone)
	if key.Kind != subject.ZoneKind.Kind {
		next = w.Record(zone, "next", "192.0.2.1")
		next.SetNamespace(zone.Namespace)
	}
	w.Apply(next)
	defer w.Remove(next)
	w.Eventually("the deletion is known", func() bool {
		_, handled := w.verdicts.index.Resolve(desired.Key{Kind: key.Kind, Namespace: next.GetNamespace(), Name: next.GetName()})
		return handled
	})
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
				return e.Type, e.Object.(*store.Object).SyncStatus
			}
		case <-time.After(time.Minute):
			w.Fatal("no event")
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

// quiet checks that a watch with bookmarks tells nothing while a server is asked some more times.
func (w watching) quiet(server *bind.Server) {
	w.Helper()
	first := queries(w, server)
	w.Eventually("the server is asked again", func() bool { return queries(w, server) >= first+3 })
	w.begun()
}

func TestWatchTellsWhatServersDo(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"})
	z, r := w.Declare("www", "other")
	w.Eventually("all is in sync", func() bool {
		return w.get("arecord.www").Status.InSync && w.get("arecord.other").Status.InSync && w.get("dnszone.example.test").Status.InSync
	})
	list := w.list(query{namespace: ns})
	events := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: list.ResourceVersion, Bookmarks: true})
	events.quiet(primary)

	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.Apply(r)
	events.until("arecord.www", "Propagating primary-0=Stale secondary-0=Stale")
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	w.SetProgrammed(z, r)
	w.Apply(r)
	events.until("arecord.www", "Propagating primary-0=InSync secondary-0=Stale")
	began := time.Now()
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	s := events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	t.Logf("seen in sync %s after the refresh was asked for", time.Since(began).Round(time.Millisecond))

	// The resourceVersions of events can be begun from, and what was seen is not told again.
	again := w.watch(query{namespace: ns, fields: fields.OneTermEqualSelector("metadata.name", "arecord.www")}, store.WatchOptions{ResourceVersion: s.ResourceVersion, Bookmarks: true})
	again.quiet(primary)

	secondary.Pause()
	began = time.Now()
	events.until("arecord.other", "OutOfSync primary-0=InSync secondary-0=Unreachable")
	t.Logf("seen unreachable %s after it was paused", time.Since(began).Round(time.Millisecond))
	again.until("arecord.www", "OutOfSync primary-0=InSync secondary-0=Unreachable")
	secondary.Resume()
	again.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")

	w.Remove(r)
	if s := again.until("arecord.www", "gone"); s.Zone != "example.test" || s.Summary.Servers != 2 {
		t.Errorf("the end of a record of zone %q on %d servers is told, want it as it was last", s.Zone, s.Summary.Servers)
	}
	events.until("arecord.www", "gone")
}

// A zone that is paused, and goes on, changes what all of its objects say while they are watched.
func TestWatchSeesPause(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z, _ := w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("dnszone.example.test").Status.InSync })
	events := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: w.list(query{namespace: ns}).ResourceVersion})
	for _, paused := range []string{"true", ""} {
		z = z.DeepCopy()
		z.Annotations = map[string]string{v1beta1.PausedAnnotation: paused}
		w.Apply(z)
		w.Apply(w.Record(z, "turn"+paused, "192.0.2.8"))
		for seen := false; !seen; {
			_, s := events.next()
			seen = s.Name == "arecord.turn"+paused
		}
	}
}

func TestWatchBegins(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	z, r := w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	zones := fields.SelectorFromSet(fields.Set{"kind": "DNSZone"})

	t.Run("with what there is", func(t *testing.T) {
		for _, rv := range []string{"", "0"} {
			events := w.watch(query{namespace: ns, fields: zones}, store.WatchOptions{ResourceVersion: rv})
			if kind, s := events.next(); kind != watch.Added || s.Name != "dnszone.example.test" {
				t.Errorf("resourceVersion %q: %s %s, want ADDED dnszone.example.test", rv, kind, s.Name)
			}
		}
	})
	t.Run("with a bookmark after what there is", func(t *testing.T) {
		for _, space := range []string{ns, "", "empty"} {
			events := w.watch(query{namespace: space, fields: zones}, store.WatchOptions{SendInitialEvents: new(true), Bookmarks: true})
			for {
				e := <-events.ResultChan()
				if e.Type != watch.Bookmark {
					continue
				}
				b := e.Object.(*store.Object)
				if b.Annotations[metav1.InitialEventsAnnotationKey] != "true" || b.ResourceVersion == "" {
					t.Errorf("namespace %q: bookmark %+v does not mark the end", space, b)
				}
				break
			}
		}
	})
	t.Run("with what happened since", func(*testing.T) {
		rv := w.list(query{namespace: ns}).ResourceVersion
		r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
		w.Apply(r)
		added := w.Record(z, "new", "192.0.2.7")
		w.Apply(added)
		events := w.watch(query{namespace: ns, fields: fields.SelectorFromSet(fields.Set{"kind": "ARecord"})}, store.WatchOptions{ResourceVersion: rv})
		seen := map[string]bool{}
		for len(seen) < 2 {
			_, s := events.next()
			seen[s.Name] = true
		}
		rv = w.list(query{namespace: ns}).ResourceVersion
		w.afterDeletion(keyOf("arecord.new"), func() { w.Remove(added) })
		late := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: rv})
		late.until("arecord.new", "gone")
	})
	t.Run("never from what is forgotten", func(t *testing.T) {
		now := time.Now()
		for _, rv := range []string{"1", fmt.Sprint(now.Add(-time.Hour).UnixMicro() << 11), fmt.Sprint(now.Add(time.Hour).UnixMicro() << 11)} {
			if _, err := w.tryWatch(query{}, store.WatchOptions{ResourceVersion: rv}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				t.Errorf("resourceVersion %s: %v, want gone", rv, err)
			}
		}
		if _, err := w.tryWatch(query{}, store.WatchOptions{ResourceVersion: "x"}); !apierrors.IsBadRequest(err) {
			t.Errorf("resourceVersion x: %v, want a bad request", err)
		}
	})
	t.Run("and leaves nothing behind", func(*testing.T) {
		subs := w.metric("watches")
		again := w.watch(query{namespace: ns}, store.WatchOptions{})
		again.next()
		again.ended()
		w.Eventually("all watches of finished tests are stopped", func() bool { return w.metric("watches") <= subs })
	})
}

// A watch that wants no initial events is told of nothing but what happens from then on.
func TestWatchBeginsNow(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.Deadline = time.Minute })
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	z, _ := w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	for _, rv := range []string{"", "0"} {
		events := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: rv, SendInitialEvents: new(false), Bookmarks: true})
		events.begun()
		later := w.Record(z, "later"+rv, "192.0.2.7")
		w.Apply(later)
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
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	out := w.watch(query{namespace: ns, fields: fields.ParseSelectorOrDie("status.inSync=false,kind=ARecord")}, store.WatchOptions{Bookmarks: true})
	out.quiet(primary)
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	if kind, s := out.next(); kind != watch.Added || s.Name != "arecord.www" {
		t.Errorf("%s %s, want ADDED arecord.www", kind, s.Name)
	}
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.7")
	for {
		if kind, s := out.next(); kind == watch.Deleted && s.Name == "arecord.www" {
			break
		}
	}
}

// What is told at one replica cannot be begun from at another, where the client lists again; later lists have later
// resourceVersions everywhere.
func TestWatchOfAnotherReplicaExpires(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7\ngone A 192.0.2.7"})
	z := fakekube.Zone("example.test", "primary", "secondary")
	r, gone := w.Record(z, "www", "192.0.2.7"), w.Record(z, "gone", "192.0.2.7")
	w.Apply(z)
	w.Apply(r)
	w.Apply(gone)
	w.Eventually("all is in sync", func() bool { return w.get("arecord.www").Status.InSync && w.get("arecord.gone").Status.InSync })
	other := newReplica(w.Cluster)
	records := query{namespace: ns, fields: fields.ParseSelectorOrDie("kind=ARecord")}
	first := w.list(records)
	var second *syncv1.SyncStatusList
	other.Eventually("the other replica has seen everything", func() bool { second = other.list(records); return len(second.Items) == 2 })
	if second.ResourceVersion == first.ResourceVersion || len(second.ResourceVersion) < len(first.ResourceVersion) ||
		len(second.ResourceVersion) == len(first.ResourceVersion) && second.ResourceVersion < first.ResourceVersion {
		t.Errorf("a later list has resourceVersion %s, want one after %s", second.ResourceVersion, first.ResourceVersion)
	}
	if _, err := other.tryWatch(records, store.WatchOptions{ResourceVersion: first.ResourceVersion}); !apierrors.IsResourceExpired(err) {
		t.Errorf("going on at another replica: %v, want that it has expired", err)
	}

	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.Apply(r)
	other.afterDeletion(keyOf("arecord.gone"), func() { w.Remove(gone) })
	events := other.watch(records, store.WatchOptions{ResourceVersion: second.ResourceVersion, Bookmarks: true})
	events.until("arecord.www", "Propagating primary-0=Stale secondary-0=Stale")
	again := other.watch(records, store.WatchOptions{ResourceVersion: second.ResourceVersion})
	again.until("arecord.gone", "gone")

	// A bookmark, too, is a place to go on from.
	at := events.bookmark(func(watch.Event) {})
	w.SetProgrammed(z, r)
	w.Apply(r)
	other.watch(records, store.WatchOptions{ResourceVersion: at}).until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
}

// A watch that joins others begins like any other, and one with a selector is not told about what it never saw.
func TestWatchJoinsOthers(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", Records: "a A 192.0.2.7\nb A 192.0.2.7"})
	z := fakekube.Zone("example.test", "primary", "secondary")
	w.Apply(z)
	w.Eventually("the zone is there", func() bool { return w.get("dnszone.example.test").Zone != "" })
	w.Apply(w.Record(z, "a", "192.0.2.7"))
	w.Apply(w.Record(z, "b", "192.0.2.7"))
	one := w.watch(query{namespace: ns, fields: fields.OneTermEqualSelector("metadata.name", "arecord.a")}, store.WatchOptions{})
	one.until("arecord.a", "InSync primary-0=InSync secondary-0=InSync")
	for range 20 {
		q := query{namespace: ns, fields: fields.ParseSelectorOrDie("kind=ARecord")}
		w.Eventually("both are in sync", func() bool { return len(w.list(q).Items) == 2 })
		many := w.watch(q, store.WatchOptions{ResourceVersion: w.list(q).ResourceVersion, Bookmarks: true})
		many.quiet(primary)
		many.Stop()
	}
}

func TestNobodyAsksNobodyIsAsked(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test."})
	w.Apply(fakekube.Zone("example.test", "primary", "secondary"))
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("dnszone.example.test", "InSync primary-0=InSync secondary-0=InSync")
	events.Stop()
	w.Eventually("the trackers have ended", func() bool { return w.metric("watched_namespaces") == 0 })
	w.Eventually("what was asked before is answered, and nothing more is asked", func() bool {
		before := queries(t, primary)
		time.Sleep(500 * time.Millisecond)
		return queries(t, primary) == before
	})
}

// queries counts what a server has answered so far.
func queries(t testing.TB, s *bind.Server) int {
	t.Helper()
	out, err := s.Rndc("stats")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return countQueries(t, s)
}

// What changes while a server is being asked does not end the asking.
func TestWatchGoesOnAskingAfterChanges(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.Deadline = 500 * time.Millisecond })
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	_, r := w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	secondary.Pause()
	time.Sleep(150 * time.Millisecond) // A question is under way.
	for i := range 5 {
		r.Labels["turn"] = strconv.Itoa(i)
		w.Apply(r)
		time.Sleep(20 * time.Millisecond)
	}
	secondary.Resume()
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	events.until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=InSync")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	events.until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
}
