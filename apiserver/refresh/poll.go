package refresh

import (
	"context"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// pollRounds is in how many rounds a server with a live notification stream is asked about all its zones. Each round shows
// that the server is alive; all of them together show what it does not notify, such as a zone that has expired.
const pollRounds = 20

// trackedPlace is one server of a followed zone.
type trackedPlace struct {
	*trackedZone
	server int
	last   time.Time
}

// pollServers asks every server, and returns when to do so again: about every zone, or, when it has a live notification stream,
// about those that are not in sync and those that it was not asked about for the longest time.
func (t *tracker) pollServers(interval time.Duration) time.Duration {
	asked, needed, notifying := 0, map[Peer]bool{}, map[Peer][]trackedPlace{}
	live := t.refresher.streams.liveServers()
	for _, w := range t.zones {
		for i, s := range w.zone.Servers {
			peer := peerOf(s)
			needed[peer] = true
			if !live[peer] || len(w.outOfSync) > 0 {
				t.askServer(w, i)
				asked++
				continue
			}
			p := trackedPlace{trackedZone: w, server: i}
			if last := t.refresher.answers.Full(w.placeOf(i)); last != nil {
				p.last = last.At
			}
			notifying[peer] = append(notifying[peer], p)
		}
	}
	for _, places := range notifying {
		slices.SortFunc(places, func(a, b trackedPlace) int { return a.last.Compare(b.last) })
		for _, p := range places[:(len(places)+pollRounds-1)/pollRounds] {
			t.askServer(p.trackedZone, p.server)
			asked++
		}
	}
	t.refresher.streams.keepOnly(t, needed)
	return max(interval, time.Duration(asked)*pollPerServer)
}

// askNotified asks about what servers have notified. A question that is under way may have been answered before it happened.
func (t *tracker) askNotified(notified map[notification]struct{}) {
	if len(notified) == 0 {
		return
	}
	for _, w := range t.zones {
		for i, s := range w.zone.Servers {
			_, this := notified[notification{peerOf(s), w.zone.Name()}]
			_, all := notified[notification{peerOf(s), ""}]
			if this || all {
				w.again[i] = w.asking[i]
				t.askServer(w, i)
			}
		}
	}
}

// askSameServer asks a server that has fallen silent, or answers again, about the zones of which its last answer showed
// otherwise.
func (t *tracker) askSameServer(server observe.Peer, now *observe.Observation) {
	for _, w := range t.zones {
		for i, s := range w.zone.Servers {
			if last := w.answers[i]; s.Peer() == server && last != nil && isSilent(last) != isSilent(now) {
				t.askServer(w, i)
			}
		}
	}
}

// askZone asks each server of a zone; only those that have never answered when not all.
func (t *tracker) askZone(w *trackedZone, all bool) {
	for i := range w.zone.Servers {
		if w.answers[i] == nil || all {
			t.askServer(w, i)
		}
	}
}

// askServer asks one server of a zone, unless it is being asked already; handleAnswered follows.
func (t *tracker) askServer(w *trackedZone, i int) {
	z := w.zone
	if !z.Servers[i].Addr.IsValid() || w.asking[i] {
		return
	}
	w.asking[i] = true
	t.inBackground(func() func() {
		began := time.Now()
		if t.refresher.askServer(t.ctx, z, z.Servers[i], began); z.Servers[i].ReadBy == v1beta1.ReadByQuery {
			ctx, cancel := context.WithTimeout(t.ctx, t.refresher.options.Deadline)
			defer cancel()
			t.refresher.awaitAnswers(ctx, z, z.Servers[i], began, urgent)
		}
		return func() { t.handleAnswered(z, i) }
	})
}

func (t *tracker) handleAnswered(z *desired.Zone, server int) {
	t.takeAnswers()
	w := t.zones[z.Key]
	if w == nil || w.zone != z {
		return
	}
	w.asking[server] = false
	if w.again[server] {
		w.again[server] = false
		t.askServer(w, server)
	}
	t.takeAnswer(w, server)
}
