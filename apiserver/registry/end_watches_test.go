package registry

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Watches end when their replica drains. Their clients list again at another replica, and miss nothing.
func TestWatchesEndAndOthersGoOn(t *testing.T) {
	going := newWorld(t)
	going.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	staying := newReplica(going.Cluster)
	_, www := going.Declare("www")
	for _, w := range []*world{going, staying} {
		w.Eventually("all is in sync", func() bool {
			return w.get("arecord.www").Status.InSync && w.get("dnszone.example.test").Status.InSync
		})
	}

	list := going.list(query{namespace: ns})
	marked := going.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: list.ResourceVersion, Bookmarks: true})
	plain := going.watch(query{namespace: ns}, store.WatchOptions{})
	at := marked.begun()
	plain.next()
	going.verdicts.EndWatches(going.ctx, time.Millisecond)

	for e := range plain.ResultChan() {
		if e.Type == watch.Bookmark {
			t.Errorf("a bookmark for a watch that takes none: %+v", e.Object)
		}
	}
	for e := range marked.ResultChan() {
		t.Errorf("an event that is none: %s %+v", e.Type, e.Object)
	}
	if _, err := staying.tryWatch(query{namespace: ns}, store.WatchOptions{ResourceVersion: at}); !apierrors.IsResourceExpired(err) {
		t.Errorf("going on elsewhere: %v, want that the resourceVersion has expired", err)
	}
	elsewhere := staying.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: staying.list(query{namespace: ns}).ResourceVersion})
	staying.Remove(www)
	elsewhere.until("arecord.www", "gone")
}
