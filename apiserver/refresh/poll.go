package refresh

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
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

// pollServers asks servers about the zones of which it is time, and returns when to do so again. Zones that are not in sync are asked about
// every time. So is, of a server with a live notification stream, one zone of all trackers, which shows that it is alive, and as many of the
// others that each has its turn in pollRounds. A server without a stream is asked less the longer a zone is at rest.
func (t *tracker) pollServers(interval time.Duration) time.Duration {
	now := time.Now()
	asked, needed, notifying := 0, map[Peer]bool{}, map[Peer][]trackedPlace{}
	live := t.refresher.streams.liveServers()
	for _, w := range t.zones {
		for i, s := range w.zone.Servers {
			peer := peerOf(s)
			needed[peer] = true
			p := trackedPlace{trackedZone: w, server: i}
			if last := t.refresher.answers.Full(w.placeOf(i)); last != nil {
				p.last = last.At
			}
			switch {
			case len(w.outOfSync) == 0 && live[peer]:
				notifying[peer] = append(notifying[peer], p)
				continue
			case len(w.outOfSync) > 0 || now.Sub(p.last) >= restFor(now.Sub(w.changedAt), interval):
				t.askServer(w, i)
			}
			asked++ // One that rests is counted, too: the others are not asked more often for it.
		}
	}
	for peer, places := range notifying {
		slices.SortFunc(places, func(a, b trackedPlace) int { return a.last.Compare(b.last) })
		places = places[:(len(places)+pollRounds-1)/pollRounds]
		isAlone := t.refresher.streams.claim(peer, now, interval)
		for _, p := range places {
			if isAlone || now.Sub(p.last) >= (pollRounds-1)*interval {
				t.askServer(p.trackedZone, p.server)
				asked++
			}
		}
	}
	t.refresher.streams.keepOnly(t, needed)
	return max(interval, time.Duration(asked)*pollPerServer)
}

// restFor is how old an answer about a zone may become that has been at rest for some time: a twentieth of that, at least half of the interval,
// because timers are not exact, and at most what it takes to ask about all zones of a server with a stream.
func restFor(rest, interval time.Duration) time.Duration {
	return min(max(rest/pollRounds, interval/2), pollRounds*interval)
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
// otherwise, and has the other trackers do so.
func (t *tracker) askSameServer(server observe.Server, now *observe.Observation) {
	t.refresher.streams.noteSilence(t, peerOf(server), ask.IsSilent(now))
	for _, w := range t.zones {
		for i, s := range w.zone.Servers {
			if last := w.answers[i]; s.Peer() == server.Peer() && last != nil && ask.IsSilent(last) != ask.IsSilent(now) {
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
		t.refresher.asker.AskWatched(t.ctx, z, z.Servers[i], time.Now())
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
