package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A watch that ends because its replica goes is told a revision that another replica can go on from.
func TestWatchesEndWhereOthersGoOn(t *testing.T) {
	going, staying := newWorld(t), newWorld(t)
	primary, secondary := lagging(t, going, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	staying.key = going.key
	staying.server("primary", v1beta1.RolePrimary, primary.Addr)
	staying.server("secondary", v1beta1.RoleSecondary, secondary.Addr)
	staying.engine.memory.since = revisionAt(time.Now().Add(-time.Hour)) // as one that has run for long
	z := zone("example.test", "primary", "secondary")
	www := going.record(z, "www", "192.0.2.7")
	for _, w := range []*world{going, staying} {
		w.apply(z)
		w.apply(www)
		w.eventually("all is in step", func() bool {
			return w.get("arecord.www").Status.InSync && w.get("dnszone.example.test").Status.InSync
		})
	}

	list := going.list(Query{Namespace: ns})
	marked := going.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: list.ResourceVersion, Bookmarks: true})
	plain := going.watch(Query{Namespace: ns}, WatchOptions{})
	for _, events := range []watching{marked, plain} {
		s := events.Interface.(*subscription)
		going.eventually("the watch has begun", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.initial) == 0
		})
	}
	going.engine.EndWatches(going.ctx, time.Millisecond)

	for e := range plain.ResultChan() {
		if e.Type == watch.Bookmark {
			t.Errorf("a bookmark for a watch that takes none: %+v", e.Object)
		}
	}
	var last watch.Event
	for e := range marked.ResultChan() {
		last = e
	}
	if last.Type != watch.Bookmark {
		t.Fatalf("the last event is %q, want BOOKMARK", last.Type)
	}
	rv := last.Object.(*shared).ResourceVersion
	before, _ := parseRevision(list.ResourceVersion)
	if after, err := parseRevision(rv); err != nil || after < before {
		t.Fatalf("bookmark %s is before the list's %s: %v", rv, list.ResourceVersion, err)
	}
	elsewhere := staying.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: rv})
	staying.remove(www)
	elsewhere.until("arecord.www", "gone")
}
