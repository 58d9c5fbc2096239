package registry

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Whatever revision a watch has been handed, it can go on from there: what somebody else has seen by then it has been told
// before, or is told then.
func TestNothingIsMissedBehindARevision(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"})
	z := fakekube.Zone("example.test", "primary", "secondary")
	r, other := w.Record(z, "www", "192.0.2.7"), w.Record(z, "other", "192.0.2.7")
	w.Apply(z)
	w.Apply(other)

	changes := map[string]func(*testing.T) (become string){
		"seen by a reader": func(t *testing.T) string {
			fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
			const become = "OutOfSync primary-0=Divergent secondary-0=InSync"
			w.Eventually("it is seen", func() bool { return states(w.get("arecord.www")) == become })
			return become
		},
		"deleted": func(*testing.T) string {
			w.afterDeletion(keyOf("arecord.www"), func() { w.Remove(r) })
			return "gone"
		},
	}
	turn := 0
	handed := map[string]func(watching, func(watch.Event)) string{
		"a bookmark": func(events watching, seen func(watch.Event)) string {
			return events.bookmark(seen)
		},
		"an event": func(events watching, seen func(watch.Event)) string {
			turn++
			other.Labels["turn"] = fmt.Sprint(turn)
			w.Apply(other)
			for e := range events.ResultChan() {
				seen(e)
				if o := e.Object.(*store.Object); o.Name == "arecord.other" && o.Labels["turn"] == other.Labels["turn"] {
					return o.ResourceVersion
				}
			}
			return ""
		},
	}
	others := map[string]*query{
		"alone":                        nil,
		"beside one of everything":     {namespace: ns},
		"beside one of another object": {namespace: ns, fields: fields.OneTermEqualSelector("metadata.name", "arecord.other")},
	}
	for change, happens := range changes {
		for what, hand := range handed {
			for beside, q := range others {
				t.Run(fmt.Sprintf("%s, behind %s, %s", change, what, beside), func(t *testing.T) {
					fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.7")
					w.Apply(r)
					w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
					from := store.WatchOptions{ResourceVersion: w.list(query{namespace: ns}).ResourceVersion, Bookmarks: true}
					events := w.watch(query{namespace: ns}, from)
					if q != nil {
						defer w.watch(*q, from).Stop()
					}
					become := happens(t)
					told := false
					at := hand(events, func(e watch.Event) {
						s := e.Object.(*store.Object)
						told = told || s.Name == "arecord.www" && (e.Type == watch.Deleted && become == "gone" || e.Type != watch.Deleted && states(s.SyncStatus) == become)
					})
					events.ended()
					again := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: at})
					if !told {
						again.until("arecord.www", become)
					}
					again.ended()
				})
				w.Eventually("nobody watches", func() bool { return w.metric("watched_namespaces") == 0 })
			}
		}
	}
}

// What a watch knows it is not told again when it goes on, although its tracker has ended with it.
func TestGoingOnTellsNothingTwice(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.Deadline = time.Minute })
	w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync && w.get("dnszone.example.test").Status.InSync })
	at := w.list(query{namespace: ns}).ResourceVersion
	for range 5 {
		events := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: at, Bookmarks: true})
		at = events.begun() // fails after any other event
		events.ended()
	}
}

// All pages of a list have the resourceVersion of the first one, and may be made by several replicas: what is on a later page and ends before
// the watch that goes on from there is not missed.
func TestWatchFromPages(t *testing.T) {
	for name, pagesByOther := range map[string]bool{"of one replica": false, "of two": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			other := w
			if pagesByOther {
				other = newReplica(w.Cluster)
			}
			z := fakekube.Zone("example.test")
			later := w.Record(z, "later", "192.0.2.7")
			w.Apply(w.Record(z, "first", "192.0.2.7"))
			w.Apply(later)
			for _, replica := range []*world{w, other} {
				replica.Eventually("both are there", func() bool {
					_, isLast := replica.verdicts.index.Resolve(keyOf("arecord.later"))
					return isLast
				})
			}
			first := w.list(query{namespace: ns, limit: 1})
			next := other.list(query{namespace: ns, continueAt: first.Continue})
			if got := names(next); len(got) != 1 || got[0] != "arecord.later" {
				t.Fatalf("the second page has %v", got)
			}
			w.afterDeletion(keyOf("arecord.later"), func() { w.Remove(later) })
			events := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: next.ResourceVersion})
			if kind, s := events.next(); kind != watch.Deleted || s.Name != "arecord.later" {
				t.Errorf("%s %s, want the end of arecord.later", kind, s.Name)
			}
		})
	}
}

// What comes to be in a namespace of which there was nothing when a watch of all namespaces began is told, at revisions that
// the watch has not heard.
func TestNewNamespaceIsToldAtNewRevisions(t *testing.T) {
	for name, begin := range map[string]func(*world) store.WatchOptions{
		"from a list": func(w *world) store.WatchOptions {
			return store.WatchOptions{ResourceVersion: w.list(query{}).ResourceVersion}
		},
		"with all there is":   func(*world) store.WatchOptions { return store.WatchOptions{} },
		"with nothing":        func(*world) store.WatchOptions { return store.WatchOptions{SendInitialEvents: new(false)} },
		"with nothing, empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.Record(fakekube.Zone("example.test"), "www", "192.0.2.7")
			o := store.WatchOptions{SendInitialEvents: new(false)}
			if begin != nil {
				w.Apply(r)
				w.Eventually("the record is there", func() bool { return len(w.list(query{}).Items) == 1 })
				o = begin(w)
			}
			o.Bookmarks = true
			events := w.watch(query{}, o)
			if o.ResourceVersion == "" && o.SendInitialEvents == nil {
				events.next()
			}
			var heard, rev uint64
			_, _ = fmt.Sscan(events.begun(), &heard)
			r.Namespace = "elsewhere"
			w.Apply(r)
			kind, s := events.next()
			if _, _ = fmt.Sscan(s.ResourceVersion, &rev); kind != watch.Added || s.Namespace != "elsewhere" || rev <= heard {
				t.Errorf("%s %s/%s at %d after a bookmark at %d", kind, s.Namespace, s.Name, rev, heard)
			}
		})
	}
}

// A list that does not have an object any more is never one from which a watch takes the client to know it, although the event of
// its deletion is still to come: another object of that name, made since, is new.
func TestListEndsWhatItLacks(t *testing.T) {
	w := newWorld(t)
	z := fakekube.Zone("example.test")
	old := w.Record(z, "www", "192.0.2.7")
	w.Apply(old)
	w.Eventually("the record is there", func() bool { return len(w.list(query{namespace: ns}).Items) == 1 })
	before := w.list(query{namespace: ns}).Items[0]
	w.afterDeletion(keyOf("arecord.www"), func() { w.Remove(old) })
	// As if the deletion had not been handled.
	ghost := before.DeepCopy()
	ghost.UID, ghost.ObjectRef.UID = "ghost", "ghost"
	if outdated := w.verdicts.store.Publish(w.verdicts.store.Revision(), ghost); len(outdated) > 0 {
		t.Fatal("the ghost is not published")
	}
	list := w.list(query{namespace: ns})
	if len(list.Items) > 0 {
		t.Fatalf("listed: %v", names(list))
	}
	events := w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: list.ResourceVersion, Bookmarks: true})
	events.begun()
	again := w.Record(z, "www", "192.0.2.7")
	again.UID = "another"
	w.Apply(again)
	if kind, s := events.next(); kind != watch.Added || s.ObjectRef.UID != "another" {
		t.Errorf("%s of %s, want it added", kind, s.ObjectRef.UID)
	}
}
