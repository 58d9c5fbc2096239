package refresh

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

const ns = fakekube.Namespace

// manyWatchers is how many watchers there are at least for which verdicts are debounced.
const manyWatchers = int(minDebounce / debouncePerWatcher)

// recorder is a store that notes what is published.
type recorder struct {
	*store.Store
	mu        sync.Mutex
	published map[string][]string
	broken    bool
}

func (p *recorder) Publish(evaluatedFrom uint64, verdicts ...*syncv1.SyncStatus) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		panic("broken")
	}
	for _, v := range verdicts {
		if v != nil && !p.IsPublished(store.KeyOf(v), p.Digest(v)) {
			text := string(v.Status.Phase)
			for _, s := range v.Servers {
				text += " " + s.Pod + "=" + string(s.State)
			}
			p.published[v.Name] = append(p.published[v.Name], text)
		}
	}
	return p.Store.Publish(evaluatedFrom, verdicts...)
}

// take returns what has been published of an object since the last call.
func (p *recorder) take(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.published, name)
	return p.published[name]
}

// world is a Refresher between objects that the test declares and servers that the test runs.
type world struct {
	*fakekube.Cluster
	*Refresher
	recorder *recorder
	ctx      context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: fakekube.New(t), recorder: &recorder{published: map[string][]string{}}}
	inf := w.NewInformers()
	w.recorder.Store = store.New(time.Now, nil)
	options := Options{Options: ask.Options{Deadline: time.Minute}, WatchInterval: time.Hour}
	var err error
	if w.Refresher, err = New(inf, desired.NewIndex(inf, w.FindServers), w.ReadKey, w.recorder, options); err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go w.Run(w.ctx)
	w.Eventually("the caches are filled", inf.HasSynced)
	return w
}

// stepper is a tracker that takes its steps one by one, as the test has it.
type stepper struct {
	*world
	*tracker
}

// interest is one of a watch that is about to begin.
func (s stepper) interest() *Interest {
	in := &Interest{scope: store.Scope{Namespace: ns}, trackers: &s.trackers, ready: make(chan struct{}), awaited: map[string]bool{ns: true}}
	s.attach(in)
	return in
}

// step does what the tracker does when it is woken, and again with each answer and all news until there is nothing to wait for. An event
// that comes late makes another snapshot of a zone, which the tracker has to take over.
func (s stepper) step() {
	s.Helper()
	s.handleNews()
	for {
		s.takeAnswers()
		s.evaluateDirty()
		s.admitInterests(time.Now())
		busy := slices.ContainsFunc(slices.Collect(maps.Values(s.zones)), func(w *trackedZone) bool { return w.confirming || slices.Contains(w.asking, true) }) ||
			slices.ContainsFunc(slices.Collect(maps.Values(s.objects)), func(o *trackedObject) bool { return o.asking })
		if !busy {
			if !s.hasNews() {
				return
			}
			s.handleNews()
			continue
		}
		select {
		case handle := <-s.done:
			handle()
		case <-time.After(time.Minute):
			s.Fatal("no answer")
		}
	}
}

func (s stepper) hasNews() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.news.touched) > 0 || len(s.news.notified) > 0 || s.news.servers || s.serversDue || s.news.interests
}

func (s stepper) askAll() {
	for _, w := range s.zones {
		s.askZone(w, true)
	}
	s.step()
}

// declare gives the record another address, and steps.
func (s stepper) declare(r *v1beta1.ARecord, address string) {
	s.Helper()
	r.Generation, r.Spec.IPv4Addresses = r.Generation+1, []string{address}
	s.Apply(r)
	s.Eventually("the cache has the change", func() bool {
		stored, _ := informers.Get[*v1beta1.ARecord](s.world.informers, "ARecord", ns, r.Name)
		return stored.Generation == r.Generation
	})
	key := desired.Key{Kind: "ARecord", Namespace: ns, Name: r.Name}
	s.index.Apply(key)
	s.tracker.touchObject(key)
	s.tracker.touchObject(desired.KeyOf(desired.ZoneKey{Namespace: ns, Name: "example.test"}))
	s.step()
}

func (s stepper) expect(what, name string, want ...string) {
	s.Helper()
	if got := s.recorder.take(name); !slices.Equal(got, want) {
		s.Fatalf("%s: of %s %q was published, want %q", what, name, got, want)
	}
}

// Many watchers are not notified of each step that a change takes, but of its end at once; and of a change that goes no
// further when it is time, or when somebody else begins to watch.
func TestManyWatchersAreNotifiedOfTheEnd(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	_, r := w.Declare("www")
	www := desired.Key{Kind: "ARecord", Namespace: ns, Name: "www"}
	w.Eventually("it is in sync", func() bool {
		v := w.Verdicts(w.ctx, []desired.Key{www}, time.Now())[0]
		return v != nil && v.Status.InSync
	})
	w.recorder.take("arecord.www")
	s := stepper{w, newTracker(w.ctx, w.Refresher, ns)}
	for range manyWatchers {
		s.interest()
	}
	const (
		record, zone = "arecord.www", "dnszone.example.test"
		inSync       = "InSync primary-0=InSync secondary-0=InSync"
		onNone       = "Propagating primary-0=Stale secondary-0=Stale"
		onPrimary    = "Propagating primary-0=InSync secondary-0=Stale"
	)
	s.step()
	s.expect("at first", zone, inSync)
	s.expect("at first", record)

	later := time.Now().Add(time.Hour) // The test says when it is time.
	s.publishAt = later
	s.declare(r, "192.0.2.8")
	s.expect("declared", record)
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	s.askAll()
	s.expect("on the primary", record)
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	var got []string
	s.Eventually("it is published", func() bool {
		s.askAll()
		got = append(got, s.recorder.take(record)...)
		return len(got) > 0
	})
	if !slices.Equal(got, []string{inSync}) {
		t.Errorf("everywhere: %q", got)
	}
	s.expect("with its record", zone)
	s.publishAt = time.Now()
	s.step()
	s.expect("after its record", zone, inSync)

	s.publishAt = later
	s.declare(r, "192.0.2.9")
	s.expect("declared again", record)
	s.publishAt = time.Now()
	s.step()
	s.expect("in time", record, onNone)

	s.publishAt = later
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	s.askAll()
	s.expect("on the primary again", record)
	late := s.interest()
	s.step()
	s.expect("when another one begins", record, onPrimary)
	select {
	case <-late.Ready():
	default:
		t.Error("the other one does not begin")
	}
}

// What waits for another look at wrong data is evaluated when that has been taken, also when the zone has changed meanwhile.
func TestConfirmationEndsTheWaiting(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z, _ := w.Declare("www")
	w.Eventually("the objects are known", func() bool {
		s, ok := w.index.Resolve(desired.Key{Kind: "ARecord", Namespace: ns, Name: "www"})
		return ok && len(s.Zones) == 1 && len(s.Zones[0].Servers) == 2
	})
	s := stepper{w, newTracker(w.ctx, w.Refresher, ns)}
	s.interest()
	s.step()
	s.expect("at first", "arecord.www", "InSync primary-0=InSync secondary-0=InSync")

	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	for _, tz := range s.zones {
		s.askServer(tz, 0)
		(<-s.done)()
		s.evaluateDirty()
		if !tz.confirming {
			t.Error("wrong data is not looked at again")
		}
	}
	s.expect("before another look", "arecord.www")
	w.Apply(w.Record(z, "other", "192.0.2.7")) // makes another snapshot of the zone
	s.Eventually("it is published", func() bool {
		s.step()
		return s.recorder.IsPublished(desired.Key{Kind: "ARecord", Namespace: ns, Name: "www"}, s.objects[desired.Key{Kind: "ARecord", Namespace: ns, Name: "www"}].confirmed)
	})
	s.expect("after another look", "arecord.www", "OutOfSync primary-0=Divergent secondary-0=InSync")
}

// A server that seems to be ahead of the primaries may only have been asked later than these. They are asked again before
// anybody learns of it.
func TestAheadOfThePrimariesIsConfirmed(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Declare("www")
	key := desired.Key{Kind: "ARecord", Namespace: ns, Name: "www"}
	w.Eventually("the objects are known", func() bool {
		s, ok := w.index.Resolve(key)
		return ok && len(s.Zones) == 1 && len(s.Zones[0].Servers) == 2
	})
	s := stepper{w, newTracker(w.ctx, w.Refresher, ns)}
	s.interest()
	s.step()
	s.expect("at first", "arecord.www", "InSync primary-0=InSync secondary-0=InSync")

	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the secondary has caught up", func() bool {
		reply, err := wire.Query(t.Context(), secondary.Addr, "example.test.", dns.TypeSOA)
		return err == nil && len(reply.Msg.Answer) == 1 && reply.Msg.Answer[0].(*dns.SOA).Serial == 11
	})
	for _, tz := range s.zones {
		s.askServer(tz, 1)
		(<-s.done)()
	}
	s.evaluateDirty()
	s.expect("by an answer of the secondary alone", "arecord.www")
	s.step()
	s.expect("when the primary was asked again", "arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
}

// Many who ask about instances and clusters at the same time cost a server one question for each zone.
func TestQuestionsAboutFleetsAreShared(t *testing.T) {
	w := newWorld(t)
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10}}, Transfer: w.Key})
	p := bind.StartProxy(t, s.Addr)
	var asked atomic.Int32
	arrived, release := make(chan struct{}, 1000), make(chan struct{})
	p.Filter(func(_ string, reply []byte) ([]byte, error) {
		if m := new(dns.Msg); m.Unpack(reply) == nil && m.Question[0].Qtype == dns.TypeSOA {
			asked.Add(1)
			arrived <- struct{}{}
			<-release
		}
		return reply, nil
	})
	w.Server("primary", v1beta1.RolePrimary, p.Addr)
	w.Apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	w.Apply(fakekube.Zone("example.test", "primary"))
	var instance, cluster metav1.Object
	w.Eventually("all is there", func() bool {
		instance, _ = informers.Get[metav1.Object](w.informers, "Bind9Instance", ns, "primary")
		cluster, _ = informers.Get[metav1.Object](w.informers, "Bind9Cluster", ns, "c")
		zone, ok := informers.Get[metav1.Object](w.informers, "DNSZone", ns, "example.test")
		return instance != nil && cluster != nil && ok && zone != nil && len(w.index.Fleet(instance).Servers) == 1
	})

	since := time.Now()
	first, leave := context.WithCancel(w.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		w.asker.AskFleets(first, since, nil, instance)
	}()
	<-arrived
	leave()
	<-gone
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { w.asker.AskFleets(w.ctx, since, nil, instance) })
		wg.Go(func() { w.asker.AskFleets(w.ctx, since, nil, cluster) })
	}
	close(release)
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if o := w.answers.Serial(evaluate.Place{Server: observe.Peer{Addr: p.Addr, Namespace: ns}, Zone: "example.test."}); !o.Authoritative || o.Serial != 10 {
		t.Errorf("%+v", o)
	}
	w.asker.AskFleets(w.ctx, time.Now(), nil, instance, cluster)
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times when that was too long ago", n)
	}
}

// Whoever changes servers all the time has the zones of all others looked at now and then, and they learn of the last change.
func TestChangesOfServersAreFollowedInTurn(t *testing.T) {
	w := newWorld(t)
	w.Apply(fakekube.Zone("example.test"))
	zone := desired.ZoneKey{Namespace: ns, Name: "example.test"}
	w.Eventually("the zone is known", func() bool { return w.index.Zone(zone) != nil })
	s := stepper{w, newTracker(w.ctx, w.Refresher, ns)}
	s.interest()
	s.step()

	looks, last, began := 0, s.zones[zone].zone, time.Now()
	for time.Since(began) < 3*serversInterval {
		w.index.ServersChanged()
		s.addNews(func(n *news) { n.servers = true })
		s.handleNews()
		if now := s.zones[zone].zone; now != last {
			looks, last = looks+1, now
		}
	}
	if most := 1 + int(time.Since(began)/serversInterval); looks == 0 || looks > most {
		t.Errorf("the zone was looked at %d times, at most %d are due", looks, most)
	}
	s.Eventually("the last change is taken over", func() bool {
		s.step()
		return s.zones[zone].zone == w.index.Zone(zone)
	})
}
