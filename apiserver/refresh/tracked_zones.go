package refresh

import (
	"maps"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// trackedZone is one zone that a tracker follows.
type trackedZone struct {
	key  desired.ZoneKey
	zone *desired.Zone // nil only until the first adoptZone
	// answers are those that the tracker has looked at, by server; nil for a server that has never answered.
	answers []*observe.Observation
	asking  []bool
	again   []bool // whether to ask once more after the answer that is awaited
	// onPaths are the states of the paths that the tracker has looked at; askingPaths is true while they are being asked, pathsAgain
	// when they are to be once more.
	onPaths                 []syncv1.ServerState
	askingPaths, pathsAgain bool
	// onFurther is the same for further paths.
	onFurther []furtherState
	// members are the objects that are followed for this zone, outOfSync those of them that were so at last.
	members, outOfSync map[desired.Key]struct{}
	// children are the members that are zones below it, by canonical name.
	children map[string]desired.Key
	// judged is the judgement of a round of evaluation.
	judged *syncstatus.Evaluation
	round  int
	// security is what was last known of the zone's; nil at first. It is looked at again at securityAt. movedAt is when all members were
	// evaluated because of it.
	security            *evaluate.SecurityState
	securityAt, movedAt time.Time
	audit               audit
	// changedAt is when a server last answered otherwise, or the declaration changed.
	changedAt time.Time
	// What has to be evaluated again: some members or all.
	suspects map[desired.Key]struct{}
	all      bool
	// unconfirmed are members found to have wrong data, which is looked at again; confirming is true while it is.
	unconfirmed map[desired.Key]finding
	confirming  bool
	// heldUntil is until when only answers to the questions now under way count; evaluated is set when what can be said
	// without them has been.
	heldUntil time.Time
	evaluated bool
}

// followZone finds a followed zone, or begins to follow it.
func (t *tracker) followZone(key desired.ZoneKey) *trackedZone {
	w := t.zones[key]
	if w == nil {
		w = &trackedZone{
			key: key, children: map[string]desired.Key{}, members: map[desired.Key]struct{}{}, outOfSync: map[desired.Key]struct{}{},
			suspects: map[desired.Key]struct{}{}, unconfirmed: map[desired.Key]finding{},
		}
		t.zones[key] = w
		if key.Namespace != t.namespace {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.foreign[key] = struct{}{}
		}
	}
	return w
}

// leaveZone takes an object out of a zone, which is not followed any more when it was the last.
func (t *tracker) leaveZone(zone desired.ZoneKey, key desired.Key) {
	w := t.zones[zone]
	if w == nil {
		return
	}
	delete(w.members, key)
	maps.DeleteFunc(w.children, func(_ string, child desired.Key) bool { return child == key })
	delete(w.outOfSync, key)
	delete(w.suspects, key)
	delete(w.unconfirmed, key)
	if len(w.members) > 0 {
		return
	}
	delete(t.zones, zone)
	delete(t.dirty, w)
	t.releaseAnswers(w)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.foreign, zone)
}

// refreshZone takes over the present snapshot of a zone that is followed.
func (t *tracker) refreshZone(key desired.ZoneKey) {
	if w := t.zones[key]; w != nil {
		if z := t.refresher.index.Zone(key); z != nil {
			t.adoptZone(w, z)
		}
	}
}

// adoptZone switches a tracked zone to a snapshot. Servers that are in both keep their answers.
func (t *tracker) adoptZone(w *trackedZone, z *desired.Zone) {
	was := w.zone
	t.evaluateLater(w)
	if was == z {
		return
	}
	redeclared := was == nil || was.Declared != z.Declared
	if redeclared && was != nil {
		w.suspectTouched(z, was)
	}
	// Answers to questions about an earlier snapshot count for what they show, but new ones are asked.
	again := slices.Contains(w.again, true)
	if was == nil || was.Name() != z.Name() || !slices.EqualFunc(was.Servers, z.Servers, observe.Server.Equal) {
		w.all = true
		t.releaseAnswers(w)
		w.zone = z
		t.holdAnswers(w, was)
	}
	again = again || was != nil && !z.HasBelow(was)
	w.zone, w.changedAt = z, time.Now()
	w.asking, w.again = make([]bool, len(z.Servers)), make([]bool, len(z.Servers))
	t.dirty[w] = struct{}{}
	t.askPathsTo(w)
	t.askZone(w, redeclared || again)
	if redeclared {
		w.heldUntil, w.evaluated = time.Now().Add(declarationHold), false
		time.AfterFunc(declarationHold, func() { wake(t.woken) })
	}
}

// suspectTouched marks what may have another verdict by a snapshot than by the one before.
func (w *trackedZone) suspectTouched(z, was *desired.Zone) {
	touched, all := z.Declared.AffectedObjects(was.Declared)
	w.all = w.all || all
	for k := range touched {
		w.suspect(k)
	}
	w.suspectUnstable()
}

// suspect marks a member.
func (w *trackedZone) suspect(k desired.Key) {
	if _, member := w.members[k]; member {
		w.suspects[k] = struct{}{}
	}
}

// suspectUnstable marks what any change of the zone may concern: members that are not in sync, and the zone itself.
func (w *trackedZone) suspectUnstable() {
	maps.Copy(w.suspects, w.outOfSync)
	w.suspect(desired.KeyOf(w.key))
}

func (w *trackedZone) placeOf(server int) evaluate.Place {
	return evaluate.PlaceOf(w.zone.Servers[server], w.zone.Declared.ZoneName())
}

// holdAnswers takes over the answers of the zone's servers, as far as they are known, and follows the servers.
func (t *tracker) holdAnswers(w *trackedZone, was *desired.Zone) {
	w.answers = make([]*observe.Observation, len(w.zone.Servers))
	for i, s := range w.zone.Servers {
		if !s.Addr.IsValid() {
			continue
		}
		t.refresher.answers.Hold(w.placeOf(i), t)
		if s.Provider == "" {
			t.refresher.streams.followServer(t, peerOf(s))
		}
		isSame := func(o observe.Server) bool { return o.Addr == s.Addr && o.Pod == s.Pod }
		if was != nil && slices.ContainsFunc(was.Servers, isSame) {
			w.answers[i] = t.refresher.answers.Full(w.placeOf(i))
		}
	}
	byName := t.zonesByName[w.zone.Declared.ZoneName()]
	if byName == nil {
		byName = map[*trackedZone]struct{}{}
		t.zonesByName[w.zone.Declared.ZoneName()] = byName
	}
	byName[w] = struct{}{}
}

// releaseAnswers ends holdAnswers.
func (t *tracker) releaseAnswers(w *trackedZone) {
	if w.zone == nil {
		return
	}
	for i, s := range w.zone.Servers {
		if s.Addr.IsValid() {
			t.refresher.answers.Release(w.placeOf(i), t)
		}
	}
	name := w.zone.Declared.ZoneName()
	if delete(t.zonesByName[name], w); len(t.zonesByName[name]) == 0 {
		delete(t.zonesByName, name)
	}
}

// takeAnswers looks at answers that have changed, whoever asked.
func (t *tracker) takeAnswers() {
	t.mu.Lock()
	changed := t.changed
	t.changed = map[evaluate.Place]struct{}{}
	t.mu.Unlock()
	for place := range changed {
		for w := range t.zonesByName[place.Zone] {
			t.takeAnswersOf(w, place.Server)
		}
	}
}

// takeAnswersOf looks at the present answer of a server of a zone, which may have it under several names.
func (t *tracker) takeAnswersOf(w *trackedZone, server observe.Peer) {
	for i, s := range w.zone.Servers {
		if s.Peer() == server {
			t.takeAnswer(w, i)
		}
	}
}

// takeAnswer looks at the present answer of one server of a zone.
func (t *tracker) takeAnswer(w *trackedZone, i int) {
	now, was := t.refresher.answers.Full(w.placeOf(i)), w.answers[i]
	if now == nil {
		return
	}
	w.compareAnswers(was, now)
	w.answers[i] = now
	if was == nil || !evaluate.IsSameState(was, now) {
		t.askPathsTo(w)
	}
	if w.security == nil || was == nil || !evaluate.IsSameAnswer(was, now) {
		t.checkSecurity(w, time.Now())
	}
	if was == nil || !evaluate.IsSameState(was, now) || !evaluate.IsSameAnswer(was, now) {
		w.changedAt = now.At
	}
	if was != nil && ask.IsSilent(was) != ask.IsSilent(now) {
		t.askSameServer(w.zone.Servers[i], now)
	}
	t.evaluateLater(w)
}

// compareAnswers marks the members to whom it matters that a server's answer is another one now.
func (w *trackedZone) compareAnswers(was, now *observe.Observation) {
	switch {
	case was == nil || !evaluate.IsSameState(was, now):
		w.all = true
	case evaluate.IsSameAnswer(was, now):
	default:
		w.suspectUnstable()
		for k := range evaluate.ChangedAnswers(was, now) {
			w.all = w.all || k.Type == dns.TypeSOA // Of a zone below: it may hide anything.
			for o := range w.zone.Declared.ObjectsAt(k.Name) {
				w.suspect(o)
			}
		}
		if now.Mirror == nil {
			return
		}
		for name := range now.Mirror.ChangedNames(was.Mirror) {
			if w.zone.Declared.HidesOthers(name, was.Mirror, now.Mirror) {
				w.all = true
				return
			}
			for k := range w.zone.Declared.ObjectsAt(name) {
				w.suspect(k)
			}
			w.suspectChild(name)
		}
	}
}

// suspectChild marks the zone that a name of its parent is about: that of the delegation, or of its glue.
func (w *trackedZone) suspectChild(name string) {
	if len(w.children) == 0 {
		return
	}
	for at := range rrset.NamesBelow(w.zone.Declared.ZoneName(), name) {
		if child, below := w.children[at]; below {
			w.suspect(child)
			return
		}
	}
}

// evaluateLater marks a zone that has suspects.
func (t *tracker) evaluateLater(w *trackedZone) {
	if w.all || len(w.suspects) > 0 {
		t.dirty[w] = struct{}{}
	}
}

// isHeld reports whether answers from after the last change of the declaration are still to be expected soon.
func (w *trackedZone) isHeld() bool {
	return slices.Contains(w.asking, true) && time.Now().Before(w.heldUntil)
}

// isAnswered reports whether every server has answered once, and each path. A path that refuses the zone does not count while it is asked
// once more.
func (w *trackedZone) isAnswered() bool {
	for i, s := range w.zone.Servers {
		if s.Addr.IsValid() && w.answers[i] == nil {
			return false
		}
	}
	return !w.askingPaths || len(w.onPaths) > 0 && !slices.ContainsFunc(w.onPaths, ask.IsRefusal)
}
