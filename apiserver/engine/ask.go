package engine

import (
	"context"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/observe"
)

// answer is what a server said to a tracker's question.
type answer struct {
	zone zoneKey
	view *view
	of   observe.Server
	observe.Observation
}

// askAll asks every server of every zone, and says when to do so again.
func (t *tracker) askAll(interval time.Duration) time.Duration {
	servers := 0
	for _, w := range t.zones {
		servers += len(w.view.servers)
		t.ask(w, true)
	}
	return max(interval, time.Duration(servers)*perServer)
}

// ask sends a question to each server of a zone that is not being asked already; only to those never heard when not all.
func (t *tracker) ask(w *watched, all bool) {
	for i, s := range w.view.servers {
		if !s.Addr.IsValid() || w.asking[i] || w.heard[i] && !all {
			continue
		}
		w.asking[i] = true
		zone, v := w.key, w.view
		go func() {
			ctx, cancel := context.WithTimeout(t.ctx, t.engine.options.Deadline)
			defer cancel()
			a := answer{zone, v, s, t.engine.observe(ctx, v, s, 0)}
			select {
			case t.answers <- a:
			case <-t.ctx.Done():
			}
		}()
	}
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
		w.asking[i] = false
	}
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
	w.answers[i], w.heard[i] = a.Observation, true
	if w.all || len(w.suspects) > 0 {
		t.dirty[w] = struct{}{}
	}
}

// compare marks the members to whom it matters that a server's answer is another one now.
func (w *watched) compare(i int, now observe.Observation) {
	was := w.answers[i]
	switch {
	case !w.heard[i] || was.Rcode != now.Rcode || was.Authoritative != now.Authoritative || was.Message() != now.Message() ||
		(was.Mirror == nil) != (now.Mirror == nil):
		w.suspectAll()
	case was.Serial != now.Serial || was.Mirror != now.Mirror:
		w.suspectUnstable()
		if now.Mirror == nil {
			return
		}
		for name := range now.Mirror.ChangedNames(was.Mirror) {
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
