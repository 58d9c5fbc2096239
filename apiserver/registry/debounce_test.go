package registry

import (
	"testing"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Each of many watchers is notified of a change that goes no further, and then of its end.
func TestEachOfManyWatchersIsTold(t *testing.T) {
	const many = 200 // more than twice as many as are needed to wait for them
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	_, r := w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	from := w.list(query{namespace: ns}).ResourceVersion
	var all []watching
	for range many {
		all = append(all, w.watch(query{namespace: ns}, store.WatchOptions{ResourceVersion: from, Bookmarks: true}))
	}
	for _, events := range all {
		events.begun()
	}
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.Apply(r)
	for _, events := range all {
		events.until("arecord.www", "Propagating primary-0=Stale secondary-0=Stale")
	}
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	for _, events := range all {
		events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	}
}
