package engine

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// crowded is how many watchers there are at least of which things are kept for a moment.
const crowded = int(worthIt / perWatcher)

// steps is a tracker that takes its steps one by one, as the test has it.
type steps struct {
	*world
	*tracker
}

// watcher is a watch of a kind that is about to begin.
func (s steps) watcher(kind string) *subscription {
	q := Query{Namespace: ns, Fields: fields.OneTermEqualSelector("kind", kind)}
	q.setDefaults()
	sub, _ := newSubscription(s.world.ctx, q)
	sub.synthetic, sub.initial[ns] = true, true
	s.attach(sub)
	return sub
}

// step does what the tracker does when it is woken, and again with each answer until there is nothing to wait for.
func (s steps) step() {
	s.Helper()
	s.look()
	for {
		s.judge()
		s.join()
		busy := slices.ContainsFunc(slices.Collect(maps.Values(s.zones)), func(w *watched) bool { return slices.Contains(w.asking, true) }) ||
			slices.ContainsFunc(slices.Collect(maps.Values(s.known)), func(k *known) bool { return k.asking })
		if !busy {
			return
		}
		select {
		case a := <-s.answers:
			s.take(a)
		case a := <-s.askedFleets:
			s.takeFleet(a)
		case <-time.After(time.Minute):
			s.Fatal("no answer")
		}
	}
}

// declare gives the record another address, and steps.
func (s steps) declare(r *v1beta1.ARecord, address string) {
	s.Helper()
	r.Generation, r.Spec.IPv4Addresses = r.Generation+1, []string{address}
	s.apply(r)
	s.eventually("the cache has the change", func() bool { return s.stored(r.Name).Generation == r.Generation })
	key := object{Kind: "ARecord", Namespace: ns, Name: r.Name}
	s.tracker.engine.index.apply(key)
	s.poke(key, zoneObject(zoneKey{Namespace: ns, Name: "example.test"}))
	s.step()
}

// handed are the events that wait for a watcher.
func handed(s *subscription) (all []string) {
	events, _ := s.take()
	for _, e := range events {
		if e.Type != watch.Bookmark {
			all = append(all, string(e.Type)+" "+states(e.Object.(*shared).SyncStatus))
		}
	}
	return all
}

// Many watchers are not told of each step that a change takes, but of its end at once; and of a change that goes no further
// when it is time, or when somebody else begins to watch.
func TestManyWatchersAreToldOfTheEnd(t *testing.T) {
	w := newWorld(t)
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	s := steps{w, makeTracker(ctx, w.engine, ns)}
	var all []*subscription
	for range crowded {
		all = append(all, s.watcher("ARecord"))
	}
	expect := func(what string, want ...string) {
		t.Helper()
		for i, sub := range all {
			if got := handed(sub); !slices.Equal(got, want) {
				t.Fatalf("%s: watcher %d was told %q, want %q", what, i, got, want)
			}
		}
	}
	ofZones := s.watcher("DNSZone")
	s.step()
	handed(ofZones)
	expect("at first", "ADDED InSync primary-0=InSync secondary-0=InSync")

	ask := func() {
		for _, w := range s.zones {
			s.ask(w, true)
		}
		s.step()
	}
	later := time.Now().Add(time.Hour) // The test says when it is time.
	s.due = later
	s.declare(r, "192.0.2.8")
	expect("declared")
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	ask()
	expect("on the primary")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	www := object{Kind: "ARecord", Namespace: ns, Name: "www"}
	before := s.known[www].revision
	s.eventually("the watchers are told", func() bool { ask(); return s.known[www].revision != before })
	expect("everywhere", "MODIFIED InSync primary-0=InSync secondary-0=InSync")

	if got := handed(ofZones); got != nil {
		t.Errorf("with its records a watcher of zones was told %q", got)
	}
	s.due = time.Now()
	s.step()
	if got, want := handed(ofZones), []string{"MODIFIED InSync primary-0=InSync secondary-0=InSync"}; !slices.Equal(got, want) {
		t.Errorf("after its records a watcher of zones was told %q, want %q", got, want)
	}

	s.due = later
	s.declare(r, "192.0.2.9")
	expect("declared again")
	s.due = time.Now()
	s.step()
	expect("in time", "MODIFIED Propagating primary-0=Stale secondary-0=Stale")

	s.due = later
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	ask()
	expect("on the primary again")
	late := s.watcher("ARecord")
	s.step()
	expect("when another one begins", "MODIFIED Propagating primary-0=InSync secondary-0=Stale")
	if got, want := handed(late), []string{"ADDED Propagating primary-0=InSync secondary-0=Stale"}; !slices.Equal(got, want) {
		t.Errorf("the other one was told %q, want %q", got, want)
	}
}

// Each of many watchers hears of a change that goes no further, and then of its end.
func TestEachOfManyWatchersIsTold(t *testing.T) {
	w := newWorld(t)
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })
	from := w.list(Query{Namespace: ns}).ResourceVersion
	var all []watching
	for range 2 * crowded {
		all = append(all, w.watch(Query{Namespace: ns}, WatchOptions{ResourceVersion: from}))
	}
	w.eventually("all have begun", func() bool {
		w.engine.hub.mu.Lock()
		defer w.engine.hub.mu.Unlock()
		tracker := w.engine.hub.trackers[ns]
		return len(tracker.joined()) == len(all)
	})
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.apply(r)
	for _, events := range all {
		events.until("arecord.www", "Propagating primary-0=Stale secondary-0=Stale")
	}
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	for _, events := range all {
		events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	}
}
