package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

const ns = "dns"

// everything selects all verdicts.
type everything struct{}

func (everything) Matches(*syncv1.SyncStatus) bool        { return true }
func (everything) MayHaveMatched(*syncv1.SyncStatus) bool { return false }

// inPhase selects verdicts by their phase.
type inPhase syncv1.Phase

func (p inPhase) Matches(s *syncv1.SyncStatus) bool      { return s.Status.Phase == syncv1.Phase(p) }
func (p inPhase) MayHaveMatched(*syncv1.SyncStatus) bool { return true }

func verdict(name string, phase syncv1.Phase) *syncv1.SyncStatus {
	s := emptyStatus()
	s.Namespace, s.Name, s.UID = ns, "arecord."+name, types.UID("uid-"+name)
	s.ObjectRef = syncv1.ObjectReference{Kind: "ARecord", Namespace: ns, Name: name, UID: s.UID}
	s.Status = syncv1.SyncStatusStatus{Phase: phase, InSync: phase == syncv1.PhaseInSync}
	s.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	return s
}

func (s *Store) mustPublish(t *testing.T, verdicts ...*syncv1.SyncStatus) {
	t.Helper()
	if outdated := s.Publish(s.Revision(), verdicts...); len(outdated) > 0 {
		t.Fatalf("%v are outdated", outdated)
	}
}

func newStore() *Store { return New(time.Now, func(watch.EventType) {}) }

func mustWatch(t *testing.T, s *Store, selector Selector, o WatchOptions) *Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), Scope{Namespace: ns}, selector, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next reads events.
func next(t *testing.T, w *Watcher, n int) (events []string) {
	t.Helper()
	for range n {
		select {
		case e := <-w.ResultChan():
			events = append(events, describe(e))
		case <-time.After(time.Minute):
			t.Fatalf("no event after %q", events)
		}
	}
	return events
}

func describe(e watch.Event) string {
	o := e.Object.(*Object)
	return fmt.Sprintf("%s %s %s", e.Type, o.ObjectRef.Name, o.Status.Phase)
}

// Older evidence never overwrites newer; the same verdict is never outdated.
func TestOlderEvidenceIsOutdated(t *testing.T) {
	s := newStore()
	before := s.Revision()
	s.mustPublish(t, verdict("www", syncv1.PhaseInSync))
	if outdated := s.Publish(before, verdict("www", syncv1.PhaseOutOfSync)); !slices.Equal(outdated, []int{0}) {
		t.Errorf("older evidence overwrites newer: %v", outdated)
	}
	again := verdict("www", syncv1.PhaseInSync)
	if outdated := s.Publish(before, again); len(outdated) > 0 {
		t.Errorf("the same verdict is outdated")
	}
	// A verdict that was confirmed is as new as one that changed.
	before = s.Revision()
	s.mustPublish(t, verdict("www", syncv1.PhaseInSync))
	if outdated := s.Publish(before, verdict("www", syncv1.PhaseOutOfSync)); len(outdated) != 1 {
		t.Error("older evidence overwrites what was confirmed")
	}
	news := verdict("www", syncv1.PhaseOutOfSync)
	s.mustPublish(t, news)
	if again.ResourceVersion == "" || again.ResourceVersion == news.ResourceVersion {
		t.Errorf("resourceVersion %s, then %s", again.ResourceVersion, news.ResourceVersion)
	}
}

// A verdict about an object that was deleted while it was evaluated is void; one about another object of that name is not.
func TestDeletedWhileEvaluated(t *testing.T) {
	s := newStore()
	v := verdict("www", syncv1.PhaseInSync)
	s.mustPublish(t, v)
	before := s.Revision()
	s.Delete(KeyOf(v), &v.ObjectMeta)
	if outdated := s.Publish(before, verdict("www", syncv1.PhaseInSync)); len(outdated) != 1 {
		t.Error("a deleted object has a verdict")
	}
	other := verdict("www", syncv1.PhaseInSync)
	other.UID, other.ObjectRef.UID = "another", "another"
	if outdated := s.Publish(before, other); len(outdated) > 0 {
		t.Error("another object of the name has no verdict")
	}
}

// The end of an object does not end another one that has its name already.
func TestLateDeletion(t *testing.T) {
	s := newStore()
	old, again := verdict("www", syncv1.PhaseInSync), verdict("www", syncv1.PhaseInSync)
	again.UID, again.ObjectRef.UID = "another", "another"
	s.mustPublish(t, old)
	s.mustPublish(t, again)
	s.Delete(KeyOf(old), &old.ObjectMeta)
	if !s.IsPublished(KeyOf(again), s.Digest(again)) {
		t.Error("the other object has ended, too")
	}
	s.Delete(KeyOf(again), &again.ObjectMeta)
	if s.IsPublished(KeyOf(again), s.Digest(again)) {
		t.Error("it has not ended")
	}
}

func TestWatchGoesOn(t *testing.T) {
	s := newStore()
	s.mustPublish(t, verdict("a", syncv1.PhaseInSync), verdict("b", syncv1.PhaseInSync), verdict("c", syncv1.PhaseInSync))
	from := formatRevision(s.Revision())
	changed := verdict("a", syncv1.PhaseOutOfSync)
	s.mustPublish(t, changed)
	b := verdict("b", syncv1.PhaseInSync)
	s.Delete(KeyOf(b), &b.ObjectMeta)

	w := mustWatch(t, s, everything{}, WatchOptions{ResourceVersion: from})
	if backlog := w.Backlog(); !slices.Equal(backlog, []Key{KeyOf(changed)}) {
		t.Errorf("backlog %v", backlog)
	}
	s.mustPublish(t, verdict("c", syncv1.PhaseFailed)) // before the watch has begun
	w.Begin([]*syncv1.SyncStatus{changed})
	if got, want := next(t, w, 3), []string{"MODIFIED a OutOfSync", "DELETED b InSync", "MODIFIED c Failed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	// What matches no more is gone for a selector.
	w = mustWatch(t, s, inPhase(syncv1.PhaseInSync), WatchOptions{ResourceVersion: from})
	w.Begin(nil)
	got := next(t, w, 3)
	slices.Sort(got)
	if want := []string{"DELETED a OutOfSync", "DELETED b InSync", "DELETED c Failed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Initial events are the present, whatever is published while they are evaluated.
func TestInitialEventsAreThePresent(t *testing.T) {
	s := newStore()
	a, b, c := verdict("a", syncv1.PhaseInSync), verdict("b", syncv1.PhaseInSync), verdict("c", syncv1.PhaseInSync)
	s.mustPublish(t, a, b, c)
	w := mustWatch(t, s, everything{}, WatchOptions{SendInitialEvents: new(true), Bookmarks: true})
	if n := len(w.Backlog()); n != 3 {
		t.Errorf("a backlog of %d", n)
	}
	s.mustPublish(t, verdict("a", syncv1.PhaseOutOfSync), verdict("d", syncv1.PhaseInSync))
	s.Delete(KeyOf(b), &b.ObjectMeta)
	w.Begin([]*syncv1.SyncStatus{a, b, c})
	got := next(t, w, 4)
	if want := []string{"ADDED c InSync", "ADDED a OutOfSync", "ADDED d InSync", "BOOKMARK  "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The bookmark that ends the initial events comes after the last verdict of all that there was, also of what has changed while these waited.
func TestInitialEventsEndWithAll(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(w *Watcher)
		want    string
	}{
		"nothing":       {func(*Watcher) {}, "ADDED a InSync, ADDED b InSync, BOOKMARK  "},
		"one changes":   {func(w *Watcher) { w.pushEvent(watch.Modified, newObject(verdict("a", syncv1.PhaseFailed))) }, "ADDED a Failed, ADDED b InSync, BOOKMARK  "},
		"one is gone":   {func(w *Watcher) { w.pushEvent(watch.Deleted, newObject(verdict("a", ""))) }, "ADDED b InSync, BOOKMARK  "},
		"one comes":     {func(w *Watcher) { w.pushEvent(watch.Added, newObject(verdict("c", syncv1.PhaseFailed))) }, "ADDED a InSync, ADDED b InSync, BOOKMARK  , ADDED c Failed"},
		"after closing": {closeGapsAndChange, "ADDED b Failed, BOOKMARK  "},
		"news changes": {func(w *Watcher) {
			w.pushEvent(watch.Added, newObject(verdict("c", syncv1.PhaseInSync)))
			w.pushEvent(watch.Added, newObject(verdict("d", syncv1.PhaseInSync)))
			w.pushEvent(watch.Modified, newObject(verdict("c", syncv1.PhaseFailed)))
		}, "ADDED a InSync, ADDED b InSync, BOOKMARK  , ADDED d InSync, ADDED c Failed"},
	} {
		s := newStore()
		a, b := verdict("a", syncv1.PhaseInSync), verdict("b", syncv1.PhaseInSync)
		s.mustPublish(t, a, b)
		// Nobody takes its events.
		w := &Watcher{store: s, scope: Scope{Namespace: ns}, selector: everything{}, initial: true, bookmarks: true, markEnd: true, pending: map[Key]int{}, wake: make(chan struct{}, 1)}
		w.Begin([]*syncv1.SyncStatus{a, b})
		tc.happens(w)
		var got []string
		for _, e := range w.takeQueue() {
			got = append(got, describe(*e))
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func closeGapsAndChange(w *Watcher) {
	w.pushEvent(watch.Deleted, newObject(verdict("a", "")))
	w.closeGaps()
	w.pushEvent(watch.Modified, newObject(verdict("b", syncv1.PhaseFailed)))
}

// From the resourceVersion of a list a watch repeats nothing, and misses nothing of what happened while it was made.
func TestListRevision(t *testing.T) {
	s := newStore()
	scope := Scope{Namespace: ns}
	began := s.Revision()
	a, b := verdict("a", syncv1.PhaseInSync), verdict("b", syncv1.PhaseInSync)
	s.mustPublish(t, a, b)
	all := []*syncv1.SyncStatus{a, b}
	present, _ := s.ListRevision(began, scope, everything{}, all, false)
	quiet, _ := parseRevision(present)
	if last, _ := parseRevision(b.ResourceVersion); quiet < last {
		t.Errorf("a list at %d has an object of %d", quiet, last)
	}
	for what, happens := range map[string]func(){
		"something else has changed": func() { s.mustPublish(t, verdict("c", syncv1.PhaseInSync)) },
		"one of it has changed":      func() { s.mustPublish(t, verdict("a", syncv1.PhaseFailed)) },
		"one of it was deleted":      func() { s.Delete(KeyOf(b), &b.ObjectMeta) },
	} {
		began := s.Revision()
		happens()
		if got, exact := s.ListRevision(began, scope, everything{}, all, false); got != formatRevision(began) || !exact {
			t.Errorf("%s: %s (exact: %v), want %d", what, got, exact, began)
		}
	}
}

// Whatever happens while a list is made, while a watch begins, and after each event: every event is of something that the client
// knows, or does not, as its type says, but from a list that is not exact; and what the client has is what there is.
func TestClientsKnowWhatTheyGet(t *testing.T) {
	selectors := map[string]Selector{"everything": everything{}, "one object": named("a"), "a phase": inPhase(syncv1.PhaseInSync)}
	for name, selector := range selectors {
		t.Run(name, func(t *testing.T) {
			inexact := 0
			for seed := range uint64(400) {
				g := &gamble{T: t, store: newStore(), rng: rand.New(rand.NewPCG(seed, 0)), selector: selector,
					there: map[string]*syncv1.SyncStatus{}, changed: map[string]bool{}, once: name == "a phase"}
				g.act(10)
				clear(g.changed)
				known, from, exact := g.list(seed%4 == 0)
				if !exact {
					inexact++
				}
				for range 4 {
					from = g.follow(known, from)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			if inexact > 100 {
				t.Errorf("%d of 400 lists would have been made again", inexact)
			}
		})
	}
}

// named selects the verdicts of the objects of a name.
type named string

func (n named) Matches(s *syncv1.SyncStatus) bool      { return s.ObjectRef.Name == string(n) }
func (n named) MayHaveMatched(*syncv1.SyncStatus) bool { return false }

// gamble is a store to which random things happen.
type gamble struct {
	*testing.T
	store    *Store
	rng      *rand.Rand
	selector Selector
	// there is what has been published last of each object that exists.
	there map[string]*syncv1.SyncStatus
	uids  int
	// once says that no object changes twice between a revision and the watch that goes on from it: more is not remembered.
	once    bool
	changed map[string]bool
	// inexact says that the client may know more than there was when the watch began.
	inexact bool
}

// act publishes, changes and deletes objects at random.
func (g *gamble) act(most int) {
	g.Helper()
	for range g.rng.IntN(most + 1) {
		name := string(rune('a' + g.rng.IntN(4)))
		v, exists := g.there[name]
		switch {
		case g.once && g.changed[name]:
		case exists && g.rng.IntN(3) == 0:
			g.store.Delete(KeyOf(v), &v.ObjectMeta)
			delete(g.there, name)
		case exists && g.rng.IntN(4) == 0: // Another object has the name before the end of this one is known.
			delete(g.there, name)
			g.publish(name)
		default:
			g.publish(name)
		}
		g.changed[name] = true
	}
}

func (g *gamble) publish(name string) *syncv1.SyncStatus {
	g.Helper()
	v := verdict(name, []syncv1.Phase{syncv1.PhaseInSync, syncv1.PhaseOutOfSync, syncv1.PhaseFailed}[g.rng.IntN(3)])
	v.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	if last := g.there[name]; last != nil {
		v.UID, v.ObjectRef.UID = last.UID, last.UID
	} else {
		g.uids++
		v.UID = types.UID(fmt.Sprint(name, g.uids))
		v.ObjectRef.UID = v.UID
	}
	g.store.mustPublish(g.T, v)
	g.there[name] = v
	return v
}

// list makes a list while other things happen, if it is paged in two pages, and returns the names in it.
func (g *gamble) list(paged bool) (known map[string]bool, from string, exact bool) {
	g.Helper()
	began := g.store.Revision()
	g.act(2)
	known = map[string]bool{}
	read := func(from, to string) (verdicts []*syncv1.SyncStatus) {
		for _, name := range slices.Sorted(maps.Keys(g.there)) {
			if name < from || name >= to {
				continue
			}
			v := g.there[name]
			if g.rng.IntN(2) == 0 && !(g.once && g.changed[name]) {
				v = g.publish(name)
				g.changed[name] = true
			}
			if verdicts = append(verdicts, v); g.selector.Matches(v) {
				known[name] = true
			}
		}
		return verdicts
	}
	first := "z"
	if paged {
		first = "c"
	}
	verdicts := read("a", first)
	g.act(2)
	from, exact = g.store.ListRevision(began, Scope{Namespace: ns}, g.selector, verdicts, paged)
	if paged {
		g.act(2)
		read(first, "z")
	}
	return known, from, exact
}

// follow watches from a revision while things happen, and returns a revision to go on from.
func (g *gamble) follow(known map[string]bool, from string) string {
	g.Helper()
	g.act(3)
	w := mustWatch(g.T, g.store, g.selector, WatchOptions{ResourceVersion: from, Bookmarks: true})
	defer w.Stop()
	g.inexact = isInexact(w.from)
	backlog := w.Backlog()
	g.act(1)
	var verdicts []*syncv1.SyncStatus
	for _, key := range backlog {
		if v := g.there[key.Name]; v != nil {
			verdicts = append(verdicts, v)
		}
	}
	w.Begin(verdicts)
	for range 3 {
		clear(g.changed)
		g.readEvents(w, known)
		g.act(1)
	}
	clear(g.changed)
	return g.readEvents(w, known)
}

// readEvents reads the events of everything until now, and returns the revision of the last one or of the bookmark behind it.
func (g *gamble) readEvents(w *Watcher, known map[string]bool) (from string) {
	g.Helper()
	w.Bookmark()
	for e := range w.ResultChan() {
		o := e.Object.(*Object)
		name := o.ObjectRef.Name
		if e.Type == watch.Bookmark {
			if from == "" || g.rng.IntN(2) == 0 {
				from = o.ResourceVersion
			}
			break
		}
		from = o.ResourceVersion
		if isKnown := known[name]; isKnown == (e.Type == watch.Added) && !g.inexact {
			g.Errorf("%s %s at %s, known is %v", e.Type, name, from, isKnown)
		}
		if known[name] = true; e.Type == watch.Deleted {
			delete(known, name)
		}
	}
	want := map[string]bool{}
	for name, v := range g.there {
		if g.selector.Matches(v) {
			want[name] = true
		}
	}
	if !maps.Equal(known, want) {
		g.Errorf("the client has %v, want %v", known, want)
	}
	return from
}

// A watch cannot go on from what is forgotten, from another replica's revision, or from the future.
func TestWatchExpires(t *testing.T) {
	s := newStore()
	for what, rev := range map[string]uint64{
		"before the process": s.oldest - 1<<replicaBits, "another replica's": s.Revision() ^ 2, "the future": revisionAt(time.Now().Add(time.Hour)) | s.clock.replica,
	} {
		if _, err := s.Watch(t.Context(), Scope{}, everything{}, WatchOptions{ResourceVersion: formatRevision(rev)}); !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Revisions stay good when the clock is set back.
func TestClockIsSetBack(t *testing.T) {
	now := time.Now()
	s := New(func() time.Time { return now }, func(watch.EventType) {})
	s.mustPublish(t, verdict("a", syncv1.PhaseFailed))
	now = now.Add(-time.Hour)
	began, v := s.Revision(), verdict("a", syncv1.PhaseInSync)
	s.mustPublish(t, v)
	paged, _ := s.ListRevision(began, Scope{Namespace: ns}, everything{}, []*syncv1.SyncStatus{v}, true)
	for what, at := range map[string]string{"an object": v.ResourceVersion, "a list": formatRevision(s.Revision()), "a page": paged} {
		if err := s.CheckResourceVersion(at); err != nil {
			t.Errorf("reading from that of %s: %v", what, err)
		}
		if _, err := s.Watch(t.Context(), Scope{Namespace: ns}, everything{}, WatchOptions{ResourceVersion: at}); err != nil {
			t.Errorf("watching from that of %s: %v", what, err)
		}
	}
}

// A clock that is set forward while the end of an object is noted makes the store forget it.
func TestClockIsSetForward(t *testing.T) {
	now := time.Now()
	s := New(func() time.Time { now = now.Add(2 * tombstoneTimeout); return now }, func(watch.EventType) {})
	a := verdict("a", syncv1.PhaseFailed)
	s.mustPublish(t, a)
	before := formatRevision(s.oldest)
	s.Delete(KeyOf(a), &a.ObjectMeta)
	if _, err := s.Watch(t.Context(), Scope{}, everything{}, WatchOptions{ResourceVersion: before}); !apierrors.IsResourceExpired(err) {
		t.Errorf("%v", err)
	}
}

// counted counts how often a selector is asked.
type counted struct {
	everything
	times *int
}

func (c counted) Matches(*syncv1.SyncStatus) bool { *c.times++; return true }

// What a list lacks and exists is not compared with its selector, for which everybody would wait.
func TestEndUnlisted(t *testing.T) {
	s := newStore()
	var all []*syncv1.SyncStatus
	for i := range 100 {
		all = append(all, verdict(fmt.Sprint("a", i), syncv1.PhaseFailed))
	}
	s.mustPublish(t, all...)
	gone, times := KeyOf(all[7]), 0
	uidOf := func(key Key) types.UID {
		if key == gone {
			return ""
		}
		return types.UID("uid-" + key.Name)
	}
	s.EndUnlisted(s.Revision(), Scope{Namespace: ns}, counted{times: &times}, all[:3], uidOf)
	if s.namespaces[ns][gone] != nil || len(s.namespaces[ns]) != 99 || times != 1 {
		t.Errorf("%d objects are left, the selector was asked %d times", len(s.namespaces[ns]), times)
	}
}

// A watch that goes on hears what happened in the order of revisions, and nothing before all is known: when it breaks off
// anywhere it can go on from there.
func TestGoingOnIsInOrderOfRevisions(t *testing.T) {
	s := newStore()
	names := []string{"c", "a", "b"}
	for _, name := range names {
		s.mustPublish(t, verdict(name, syncv1.PhaseFailed))
	}
	from := formatRevision(s.Revision())
	var backlog []*syncv1.SyncStatus
	for _, name := range names {
		v := verdict(name, syncv1.PhaseInSync)
		s.mustPublish(t, v)
		backlog = append(backlog, v)
	}
	w := mustWatch(t, s, everything{}, WatchOptions{ResourceVersion: from})
	s.mustPublish(t, verdict("d", syncv1.PhaseInSync))
	if events, _ := w.takeEvents(); len(events) > 0 {
		t.Errorf("%d events are handed over before all is known", len(events))
	}
	slices.SortFunc(backlog, func(a, b *syncv1.SyncStatus) int { return cmp.Compare(a.Name, b.Name) })
	w.Begin(backlog)
	if got, want := next(t, w, 4), []string{"MODIFIED c InSync", "MODIFIED a InSync", "MODIFIED b InSync", "MODIFIED d InSync"}; got[3] != "ADDED d InSync" || !slices.Equal(got[:3], want[:3]) {
		t.Errorf("%q, want the order of revisions", got)
	}

	w = mustWatch(t, s, everything{}, WatchOptions{ResourceVersion: from})
	w.endAfterQueue()
	if e, open := <-w.ResultChan(); open {
		t.Errorf("a watch that ends before all is known hands over %v", e)
	}
}

// A watcher who takes nothing does not make the queue grow by what it misses.
func TestQueueHoldsOneEventForEachObject(t *testing.T) {
	s := newStore()
	w := mustWatch(t, s, everything{}, WatchOptions{})
	const objects, turns = 10, 1000
	for turn := range uint64(turns) {
		for i := range objects {
			v := verdict(fmt.Sprint(i), syncv1.PhaseInSync)
			v.ResourceVersion = formatRevision(turn)
			w.pushEvent(watch.Modified, newObject(v))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.queue); n > 2*objects+maxQueueGaps+1 {
		t.Errorf("the queue has %d places for %d objects", n, objects)
	}
	events := w.takeQueue()
	for i, e := range events {
		if o := e.Object.(*Object); revisionOf(e) != turns-1 || o.ObjectRef.Name != fmt.Sprint(i) {
			t.Errorf("event %d is of %s at %d", i, o.ObjectRef.Name, revisionOf(e))
		}
	}
	if len(events) != objects {
		t.Errorf("%d events of %d objects", len(events), objects)
	}
}

// A watch with a selector gets what begins to match as added, what ends to match as deleted, and nothing of what it never
// knew; also when it goes on from a revision, and when its client is slow.
func TestEventsAreNewsToTheClient(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []syncv1.Phase // before the revision, and after
		deleted       bool
		want          string
	}{
		"begins to match":           {[]syncv1.Phase{"Failed"}, []syncv1.Phase{"InSync"}, false, "ADDED a InSync"},
		"goes on to match":          {[]syncv1.Phase{"Failed", "InSync"}, []syncv1.Phase{"InSync"}, false, ""},
		"ends to match":             {[]syncv1.Phase{"InSync"}, []syncv1.Phase{"Failed"}, false, "DELETED a Failed"},
		"never matches":             {[]syncv1.Phase{"Failed"}, []syncv1.Phase{"OutOfSync"}, false, ""},
		"deleted":                   {[]syncv1.Phase{"InSync"}, nil, true, "DELETED a InSync"},
		"deleted when it changed":   {[]syncv1.Phase{"InSync"}, []syncv1.Phase{"Failed"}, true, "DELETED a Failed"},
		"deleted without a match":   {[]syncv1.Phase{"Failed"}, nil, true, ""},
		"deleted after it appeared": {[]syncv1.Phase{"Failed"}, []syncv1.Phase{"InSync"}, true, ""},
	} {
		for when, early := range map[string]bool{"before the watch": false, "while it begins": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				s := newStore()
				for _, phase := range tc.before {
					s.mustPublish(t, verdict("a", phase))
				}
				o := WatchOptions{ResourceVersion: formatRevision(s.Revision())}
				var w *Watcher
				if early {
					w = mustWatch(t, s, inPhase(syncv1.PhaseInSync), o)
				}
				var backlog []*syncv1.SyncStatus
				for _, phase := range tc.after {
					backlog = []*syncv1.SyncStatus{verdict("a", phase)}
					s.mustPublish(t, backlog...)
				}
				if v := verdict("a", ""); tc.deleted {
					s.Delete(KeyOf(v), &v.ObjectMeta)
				}
				if !early {
					w = mustWatch(t, s, inPhase(syncv1.PhaseInSync), o)
				}
				if len(w.Backlog()) == 0 {
					backlog = nil
				}
				w.Begin(backlog)
				s.mustPublish(t, verdict("z", syncv1.PhaseInSync)) // ends what is expected
				var got []string
				for len(got) == 0 || got[len(got)-1] != "ADDED z InSync" {
					got = append(got, next(t, w, 1)...)
				}
				if got = got[:len(got)-1]; strings.Join(got, ", ") != tc.want {
					t.Errorf("%q, want %q", got, tc.want)
				}
			})
		}
	}
}

// Events that wait for a slow client become one, which is what they are to the client together.
func TestWaitingEventsBecomeOne(t *testing.T) {
	for _, tc := range []struct{ events, want []watch.EventType }{
		{[]watch.EventType{watch.Added, watch.Modified}, []watch.EventType{watch.Added}},
		{[]watch.EventType{watch.Added, watch.Deleted}, nil},
		{[]watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added}, []watch.EventType{watch.Added}},
		{[]watch.EventType{watch.Modified, watch.Deleted}, []watch.EventType{watch.Deleted}},
		{[]watch.EventType{watch.Deleted, watch.Added}, []watch.EventType{watch.Modified}},
		{[]watch.EventType{watch.Deleted, watch.Added, watch.Deleted}, []watch.EventType{watch.Deleted}},
	} {
		w := mustWatch(t, newStore(), everything{}, WatchOptions{})
		for _, kind := range tc.events {
			w.pushEvent(kind, newObject(verdict("a", syncv1.PhaseInSync)))
		}
		w.mu.Lock()
		var got []watch.EventType
		for _, e := range w.takeQueue() {
			got = append(got, e.Type)
		}
		w.mu.Unlock()
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v become %v, want %v", tc.events, got, tc.want)
		}
	}
}

// Each condition has had its status since it was first seen, however many there are and whichever come and go.
func TestConditionsKeepTheirTimes(t *testing.T) {
	s := newStore()
	at := func(second int64) metav1.Time { return metav1.Unix(second, 0) }
	published := func(now int64, conditions ...metav1.Condition) string {
		v := verdict("a", syncv1.PhaseInSync)
		for _, c := range conditions {
			c.LastTransitionTime = at(now)
			v.Status.Conditions = append(v.Status.Conditions, c)
		}
		s.mustPublish(t, v)
		var since []string
		for _, c := range v.Status.Conditions {
			since = append(since, fmt.Sprintf("%s %s %d", c.Type, c.Status, c.LastTransitionTime.Unix()))
		}
		return strings.Join(since, ", ")
	}
	accepted, programmed, propagated := metav1.Condition{Type: syncv1.ConditionAccepted, Status: "True"}, metav1.Condition{Type: syncv1.ConditionProgrammed, Status: "True"}, metav1.Condition{Type: syncv1.ConditionPropagated, Status: "True"}
	validated, answered, delegated := metav1.Condition{Type: syncv1.ConditionValidated, Status: "True"}, metav1.Condition{Type: syncv1.ConditionAnswered, Status: "True"}, metav1.Condition{Type: syncv1.ConditionDelegated, Status: "True"}
	notDelegated := delegated
	notDelegated.Status = "False"
	steps := int64(0)
	for _, step := range []struct {
		conditions []metav1.Condition
		want       string
	}{
		{[]metav1.Condition{accepted, programmed, propagated, validated, answered, delegated}, "Accepted True 0, Programmed True 0, Propagated True 0, Validated True 0, Answered True 0, Delegated True 0"},
		{[]metav1.Condition{accepted, programmed, propagated, validated, answered, delegated}, "Accepted True 0, Programmed True 0, Propagated True 0, Validated True 0, Answered True 0, Delegated True 0"},
		{[]metav1.Condition{accepted, programmed, propagated, validated, answered, notDelegated}, "Accepted True 0, Programmed True 0, Propagated True 0, Validated True 0, Answered True 0, Delegated False 2"},
		{[]metav1.Condition{accepted, programmed, propagated, notDelegated}, "Accepted True 0, Programmed True 0, Propagated True 0, Delegated False 2"},
		{[]metav1.Condition{accepted, programmed, propagated, answered, notDelegated}, "Accepted True 0, Programmed True 0, Propagated True 0, Answered True 4, Delegated False 2"},
		{[]metav1.Condition{{Type: syncv1.ConditionReady, Status: "True"}, propagated}, "Ready True 5, Propagated True 0"},
	} {
		if got := published(steps, step.conditions...); got != step.want {
			t.Errorf("step %d: %s, want %s", steps, got, step.want)
		}
		steps++
	}
}

// Deleted objects are forgotten after a while.
func TestTombstonesExpire(t *testing.T) {
	now := time.Now()
	s := New(func() time.Time { return now }, nil)
	v := verdict("www", syncv1.PhaseInSync)
	s.mustPublish(t, v)
	before := s.Revision()
	s.Delete(KeyOf(v), &v.ObjectMeta)
	now = now.Add(tombstoneTimeout + time.Second)
	s.Delete(Key{Kind: "ARecord", Namespace: ns, Name: "next"}, &metav1.ObjectMeta{Name: "next", Namespace: ns, UID: "v"})
	if len(s.namespaces) != 0 || len(s.buried) != 1 || len(s.tombstones) != 1 {
		t.Errorf("%d namespaces, %d tombstones by key, %d tombstones", len(s.namespaces), len(s.buried), len(s.tombstones))
	}
	if outdated := s.Publish(before, verdict("www", syncv1.PhaseInSync)); len(outdated) != 1 {
		t.Error("an object whose tombstone is forgotten has a verdict")
	}
}

// A watch ends after two hours, whatever its client has asked for.
func TestWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day, end := context.WithTimeout(t.Context(), 24*time.Hour)
		defer end()
		w, err := newStore().Watch(day, Scope{}, everything{}, WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range w.ResultChan() {
			t.Error("an event")
		}
		if lasted := time.Since(began); lasted != 2*time.Hour {
			t.Errorf("the watch lasted %s", lasted)
		}
	})
}

// What a server was last seen to have may have been served until it is seen to have something else.
func TestCachesFillWhileNobodyLooks(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	st := New(func() time.Time { return now }, nil)
	seen := func(state syncv1.ServerState, ttl time.Duration) *metav1.Time {
		s := emptyStatus()
		s.UID, s.ObjectRef = "1", syncv1.ObjectReference{Kind: "ARecord", Name: "www"}
		s.Servers = []syncv1.ServerStatus{{State: state}}
		s.Status.InSync = state == syncv1.StateInSync
		s.ObservedAt = new(metav1.NewMicroTime(now))
		if state == syncv1.StateStale {
			s.Servers[0].Observed = []syncv1.RRset{{Name: "www."}}
		}
		if ttl > 0 {
			s.CachesExpireAt = new(metav1.NewTime(now.Add(ttl)))
		}
		st.Publish(st.Revision(), s)
		return s.CachesExpireAt
	}
	expect := func(when string, got *metav1.Time, want time.Time) {
		t.Helper()
		if want.IsZero() && got != nil || !want.IsZero() && (got == nil || !got.Time.Equal(want)) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("old data", seen(syncv1.StateStale, time.Hour), now.Add(time.Hour))
	now = now.Add(40 * time.Minute)
	expect("silent after that", seen(syncv1.StateUnreachable, 0), now.Add(time.Hour))
	now = now.Add(40 * time.Minute)
	last := now.Add(time.Hour)
	expect("in sync", seen(syncv1.StateInSync, 0), last)
	now = now.Add(40 * time.Minute)
	expect("in sync for long", seen(syncv1.StateInSync, 0), last)
	now = now.Add(40 * time.Minute)
	expect("over", seen(syncv1.StateInSync, 0), time.Time{})
}

// A watch that goes on from the present costs nothing for the objects of which nothing is new, however many they are.
func TestGoingOnCostsWhatIsNew(t *testing.T) {
	const objects = 2000
	s := newStore()
	for i := range objects {
		s.mustPublish(t, verdict(fmt.Sprint(i), syncv1.PhaseInSync))
	}
	now := WatchOptions{ResourceVersion: formatRevision(s.Revision())}
	allocations := testing.AllocsPerRun(5, func() {
		w := mustWatch(t, s, inPhase(syncv1.PhaseInSync), now)
		if backlog := w.Backlog(); len(backlog) > 0 {
			t.Errorf("%d of %d objects are new", len(backlog), objects)
		}
		w.Begin(nil)
		w.Stop()
	})
	if allocations > objects/4 {
		t.Errorf("%.0f allocations to go on among %d objects", allocations, objects)
	}
}
