package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// known is an object that a tracker follows. Its subject has no views: those are the zones'.
type known struct {
	subject
	told
	isTold bool
	// confirmed is since when it is surely as declared now.
	confirmed time.Time
	// asking is true while the servers of an instance or a cluster are being asked, again when they are to be once more.
	asking, again bool
}

// watched is one zone that is being followed.
type watched struct {
	key     zoneKey
	view    *view
	answers []observe.Observation
	heard   []bool // whether answers[i] is one
	asking  []bool
	again   []bool // whether to ask once more after the answer that is awaited
	// verifying[i] is true while the zone's content is transferred anew, as it looked wrong; unverified are the members that
	// wait for that.
	verifying  []bool
	unverified map[object]struct{}
	// members are the objects that are followed for this zone, off those of them that were last told not to be in step.
	members, off map[object]struct{}
	// judged is the last judgement, nil before the first.
	judged *syncstatus.Judgement
	// What has to be judged again: some members or all.
	suspects map[object]struct{}
	all      bool
	// doubted are members that somebody else saw in another state than watchers were told: what the servers answer next
	// decides.
	doubted map[object]struct{}
	// held is until when only answers to the questions now under way count.
	held time.Time
	// told is set when what can be said without them has been.
	told bool
}

// takeNews gives what there is to look at, and the objects that any watcher wants to know about; all is true when these are all
// of the namespace. Both are of one moment: a watch counts as looked at when what it brought with it is among the news.
func (t *tracker) takeNews() (n news, named map[object]bool, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, t.news = t.news, noNews()
	named = map[object]bool{}
	add := func(q *Query) {
		_, key, ok := q.named()
		all = all || !ok
		if ok && key.Namespace == t.namespace {
			named[key] = true
		}
	}
	for s := range t.subs {
		add(&s.query)
	}
	for s, j := range t.joining {
		add(&s.query)
		j.looked = true
	}
	return n, named, all
}

// look takes over what has changed, asks the servers of zones where that matters, and judges what needs no server.
func (t *tracker) look() {
	n, named, everything := t.takeNews()
	defer t.takeConfirmed(n.confirmed)
	t.askNoticed(n.noticed)
	if n.all && (everything != t.everything || !everything) {
		t.lookAtAll(named, everything)
		return
	}
	for k := range n.touched {
		if k.Kind == syncstatus.ZoneKind.Kind {
			t.refresh(zoneKey{Namespace: k.Namespace, Name: k.Name})
		}
		if k.Namespace == t.namespace && (everything || named[k]) {
			t.lookAt(k)
		}
	}
	if n.fleet {
		t.lookAtFleet(named, everything)
	}
}

// lookAtAll follows what watchers are interested in and nothing else.
func (t *tracker) lookAtAll(named map[object]bool, everything bool) {
	t.everything = everything
	if everything {
		clear(named)
		for _, k := range t.engine.candidates(everythingIn(t.namespace)) {
			named[k] = true
		}
	}
	for k := range t.known {
		if !named[k] {
			t.end(k)
		}
	}
	for k := range named {
		t.lookAt(k)
	}
}

func everythingIn(namespace string) Query {
	q := Query{Namespace: namespace}
	q.setDefaults()
	return q
}

// lookAtFleet follows a change of instances or pods.
func (t *tracker) lookAtFleet(named map[object]bool, everything bool) {
	for zone := range t.zones {
		t.refresh(zone)
	}
	for _, kind := range syncstatus.FleetKinds {
		for _, k := range t.engine.ofKind(kind.Kind, t.namespace) {
			if everything || named[k] {
				t.lookAt(k)
			}
		}
	}
}

// lookAt follows an object as it is now.
func (t *tracker) lookAt(key object) {
	s, exists := t.engine.index.resolve(key)
	if !exists {
		t.end(key)
		return
	}
	k := t.known[key]
	if k == nil {
		k = &known{}
		t.known[key] = k
	}
	views := s.views
	s.views = nil
	for _, zone := range k.zones {
		if !slices.Contains(s.zones, zone) {
			t.leave(zone, key)
		}
	}
	k.subject = s
	for _, v := range views {
		w := t.follow(membership.KeyOfZone(v.zone))
		w.members[key] = struct{}{}
		w.suspect(key)
		t.adopt(w, v)
		if k.isTold && k.digest != t.engine.memory.digestOf(key) {
			w.doubted[key] = struct{}{}
			t.ask(w, true)
		}
	}
	switch {
	case isFleet(key.Kind):
		if k.isTold {
			t.tell(k, t.engine.statusOf(s, nil))
		}
		t.askFleet(k)
	case len(views) == 0:
		t.tell(k, t.engine.statusOf(s, nil))
	}
}

// follow finds a followed zone, or begins to follow it.
func (t *tracker) follow(key zoneKey) *watched {
	w := t.zones[key]
	if w == nil {
		w = &watched{
			key: key, members: map[object]struct{}{}, off: map[object]struct{}{}, suspects: map[object]struct{}{}, doubted: map[object]struct{}{},
			unverified: map[object]struct{}{},
		}
		t.zones[key] = w
		if key.Namespace != t.namespace {
			t.engine.hub.followAbroad(key, t, true)
		}
	}
	return w
}

// leave takes an object out of a zone, which is not followed any more when it was the last.
func (t *tracker) leave(zone zoneKey, key object) {
	w := t.zones[zone]
	if w == nil {
		return
	}
	for _, set := range []map[object]struct{}{w.members, w.off, w.suspects, w.doubted, w.unverified} {
		delete(set, key)
	}
	if len(w.members) > 0 {
		return
	}
	delete(t.zones, zone)
	delete(t.dirty, w)
	if zone.Namespace != t.namespace {
		t.engine.hub.followAbroad(zone, t, false)
	}
}

// refresh takes over the present view of a zone that is followed.
func (t *tracker) refresh(zone zoneKey) {
	if w := t.zones[zone]; w != nil {
		if v := t.engine.index.view(zone); v != nil {
			t.adopt(w, v)
		}
	}
}

// adopt switches a zone to a view. Servers that are in both keep their answers.
func (t *tracker) adopt(w *watched, v *view) {
	was := w.view
	t.judgeLater(w)
	if was == v {
		return
	}
	w.view = v
	declared := was == nil || was.declared != v.declared
	if declared {
		t.suspectTouched(w, was)
	}
	if was == nil || !slices.Equal(was.servers, v.servers) {
		w.suspectAll()
		t.serve(w, was)
	}
	// Answers to questions about an earlier view count for what they tell, but new ones are asked.
	again := slices.Contains(w.again, true)
	w.asking, w.again, w.verifying = make([]bool, len(v.servers)), make([]bool, len(v.servers)), make([]bool, len(v.servers))
	w.release()
	t.dirty[w] = struct{}{}
	t.ask(w, declared || again)
	if declared {
		w.held, w.told = time.Now().Add(hold), false
		time.AfterFunc(hold, t.wake)
	}
}

// suspectTouched marks what may be judged otherwise by the zone's view than by the one before.
func (t *tracker) suspectTouched(w *watched, was *view) {
	if was == nil {
		w.suspectAll()
		return
	}
	touched, all := w.view.declared.Touched(was.declared)
	if all {
		w.suspectAll()
		return
	}
	for k := range touched {
		w.suspect(k)
	}
	w.suspectUnstable()
}

// suspect marks a member.
func (w *watched) suspect(k object) {
	if _, member := w.members[k]; member {
		w.suspects[k] = struct{}{}
	}
}

// suspectUnstable marks what any news of the zone may concern: those not in step, and the zone itself.
func (w *watched) suspectUnstable() {
	maps.Copy(w.suspects, w.off)
	w.suspect(zoneObject(w.key))
}

func (w *watched) suspectAll() { w.all = true }

// serve makes places for the answers of the view's servers, fills in those that are known, and listens to all.
func (t *tracker) serve(w *watched, was *view) {
	answers, heard := w.answers, w.heard
	servers := w.view.servers
	w.answers, w.heard = make([]observe.Observation, len(servers)), make([]bool, len(servers))
	for i, s := range servers {
		if !s.Addr.IsValid() {
			w.heard[i] = true
			continue
		}
		t.engine.listeners.join(t, peerOf(s))
		for k := range answers {
			if o := was.servers[k]; o.Addr == s.Addr && o.Pod == s.Pod && heard[k] {
				w.answers[i], w.heard[i] = answers[k], true
			}
		}
	}
}
