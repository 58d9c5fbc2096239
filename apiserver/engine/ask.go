package engine

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
)

// answer is what a server said to a tracker's question.
type answer struct {
	zone zoneKey
	view *view
	of   observe.Server
	observe.Observation
}

// place is one server of a followed zone.
type place struct {
	*watched
	server int
}

// rounds is in how many rounds a server that tells of its changes is asked about all its zones. Each round shows that it is
// alive; all of them show what it does not tell, such as a zone that has expired.
const rounds = 20

// askAll asks every server, and says when to do so again: about every zone, or, when it tells of changes by itself, about
// those that are not in step and those that it was not asked about for the longest time.
func (t *tracker) askAll(interval time.Duration) time.Duration {
	asked, needed, telling := 0, map[Peer]bool{}, map[Peer][]place{}
	live := t.engine.listeners.live()
	for _, w := range t.zones {
		for i, s := range w.view.servers {
			peer := peerOf(s)
			switch needed[peer] = true; {
			case !live[peer] || len(w.off) > 0:
				t.askOne(w, i)
				asked++
			default:
				telling[peer] = append(telling[peer], place{w, i})
			}
		}
	}
	for _, places := range telling {
		slices.SortFunc(places, func(a, b place) int { return a.answers[a.server].At.Compare(b.answers[b.server].At) })
		for _, p := range places[:(len(places)+rounds-1)/rounds] {
			t.askOne(p.watched, p.server)
			asked++
		}
	}
	t.engine.listeners.keep(t, needed)
	return max(interval, time.Duration(asked)*perServer)
}

// askNoticed asks about what servers have told. A question that is under way may have been answered before it happened.
func (t *tracker) askNoticed(noticed map[notice]struct{}) {
	if len(noticed) == 0 {
		return
	}
	for _, w := range t.zones {
		zone := strings.TrimSuffix(w.view.declared.ZoneName(), ".")
		for i, s := range w.view.servers {
			_, this := noticed[notice{peerOf(s), zone}]
			_, all := noticed[notice{peerOf(s), ""}]
			if this || all {
				t.askAgain(w, i)
			}
		}
	}
}

// askAgain asks what may have changed since a question that is under way was answered.
func (t *tracker) askAgain(w *watched, i int) {
	w.again[i] = w.asking[i]
	t.askOne(w, i)
}

// verify has the content of servers that look wrong by a SyncStatus transferred anew, and what it is about looked up, unless
// watchers know already. It tells whether that is awaited.
func (t *tracker) verify(w *watched, k *known, s *syncv1.SyncStatus) (awaited bool) {
	zone := w.view.declared.ZoneName()
	var found time.Time
	for r := range s.Servers {
		row := &s.Servers[r]
		if !doubtful(row, zone) {
			continue
		}
		i := slices.IndexFunc(w.view.servers, func(o observe.Server) bool { return o.Pod == row.Pod && o.Addr.String() == row.Address })
		if i < 0 {
			continue
		}
		if w.answers[i].At.After(found) {
			found = w.answers[i].At
		}
		if t.engine.verified.doubt(w.view.servers[i].Addr, zone) && !w.verifying[i] {
			w.verifying[i] = true
			t.askAgain(w, i)
		}
		awaited = awaited || w.verifying[i]
	}
	news := !k.isTold || k.digest != t.engine.memory.digest(s)
	return news && !found.IsZero() && t.confirm(k, found) || awaited
}

// release has the members judged that waited for content to be transferred anew, once none is.
func (w *watched) release() {
	if slices.Contains(w.verifying, true) {
		return
	}
	for k := range w.unverified {
		w.suspect(k)
	}
	clear(w.unverified)
}

// askLike asks a server that has fallen silent, or speaks again, about the zones of which the last answer showed otherwise.
func (t *tracker) askLike(server netip.AddrPort, now observe.Observation) {
	for _, w := range t.zones {
		for i, s := range w.view.servers {
			if s.Addr == server && w.heard[i] && silent(w.answers[i]) != silent(now) {
				t.askOne(w, i)
			}
		}
	}
}

func silent(o observe.Observation) bool { return o.Rcode == observe.NoReply }

// ask sends a question to each server of a zone that is not being asked already; only to those never heard when not all.
func (t *tracker) ask(w *watched, all bool) {
	for i := range w.view.servers {
		if !w.heard[i] || all {
			t.askOne(w, i)
		}
	}
}

// askOne sends a question to one server of a zone, unless it is being asked already.
func (t *tracker) askOne(w *watched, i int) {
	s := w.view.servers[i]
	if !s.Addr.IsValid() || w.asking[i] {
		return
	}
	w.asking[i] = true
	zone, v := w.key, w.view
	go func() {
		ctx, cancel := context.WithTimeout(t.ctx, t.engine.options.Deadline)
		defer cancel()
		a := answer{zone, v, s, t.engine.observe(ctx, v, s, time.Now())}
		select {
		case t.answers <- a:
		case <-t.ctx.Done():
		}
	}()
}

// take notes an answer, unless the server is no longer one of the zone's.
func (t *tracker) take(a answer) {
	w := t.zones[a.zone]
	if w == nil {
		return
	}
	i := slices.IndexFunc(w.view.servers, func(s observe.Server) bool { return s.Addr == a.of.Addr && s.Pod == a.of.Pod })
	if i < 0 {
		return
	}
	if w.view == a.view {
		if w.asking[i] = false; w.again[i] {
			w.again[i] = false
			t.askOne(w, i)
		} else {
			w.verifying[i] = false
		}
		w.release()
	}
	defer t.judgeLater(w)
	if w.heard[i] && a.At.Before(w.answers[i].At) {
		return // Overtaken by an answer to a later question.
	}
	w.compare(i, a.Observation)
	if len(w.doubted) > 0 && !slices.Contains(w.asking, true) {
		for k := range w.doubted {
			w.suspect(k)
		}
		clear(w.doubted)
	}
	turned := w.heard[i] && silent(w.answers[i]) != silent(a.Observation)
	w.answers[i], w.heard[i] = a.Observation, true
	if turned {
		t.askLike(a.of.Addr, a.Observation)
	}
}

// judgeLater marks a zone of which somebody is suspected.
func (t *tracker) judgeLater(w *watched) {
	if w.all || len(w.suspects) > 0 {
		t.dirty[w] = struct{}{}
	}
}

// compare marks the members to whom it matters that a server's answer is another one now.
func (w *watched) compare(i int, now observe.Observation) {
	was := w.answers[i]
	switch {
	case !w.heard[i] || was.Rcode != now.Rcode || was.AA != now.AA || was.Authoritative != now.Authoritative || was.Message() != now.Message() ||
		(was.Mirror == nil) != (now.Mirror == nil):
		w.suspectAll()
	case was.Serial != now.Serial || was.Mirror != now.Mirror:
		w.suspectUnstable()
		if now.Mirror == nil {
			return
		}
		for name := range now.Mirror.ChangedNames(was.Mirror) {
			if w.view.declared.HidesOthers(name, was.Mirror, now.Mirror) {
				w.suspectAll()
				return
			}
			for k := range w.view.declared.ObjectsAt(name) {
				w.suspect(k)
			}
		}
	}
}

// holding tells whether answers from after the last change are still to be expected soon.
func (w *watched) holding() bool {
	return slices.Contains(w.asking, true) && time.Now().Before(w.held)
}

func (w *watched) settled() bool { return !slices.Contains(w.heard, false) }
