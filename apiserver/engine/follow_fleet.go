package engine

import "time"

// fleetPace is how many times longer than a watched zone's a watched instance or cluster waits for the next questions.
const fleetPace = 4

// askedFleet is an instance or a cluster whose servers have been asked.
type askedFleet struct {
	key       object
	questions int
}

// askFleet asks the servers of a followed instance or cluster beside everything else. What they answered is taken over by
// takeFleet.
func (t *tracker) askFleet(k *known) {
	if k.asking {
		k.again = true
		return
	}
	k.asking = true
	key, o, since := k.key, k.object, time.Now().Add(-t.engine.options.WatchInterval/2)
	followed := map[zoneAt]bool{}
	for _, w := range t.zones {
		w.view.addQuestions(followed)
	}
	go func() {
		a := askedFleet{key, t.engine.askFleets(t.ctx, since, followed, o)}
		select {
		case t.askedFleets <- a:
		case <-t.ctx.Done():
		}
	}()
}

func (t *tracker) takeFleet(a askedFleet) {
	k := t.known[a.key]
	if k == nil {
		return
	}
	k.asking = false
	t.fleetQuestions = max(t.fleetQuestions, a.questions)
	t.tell(k, t.engine.statusOf(k.subject, nil))
	if k.again {
		k.again = false
		t.askFleet(k)
	}
}

// askFleets asks the servers of all followed instances and clusters when it is time: the more questions, the seldomer.
func (t *tracker) askFleets(interval time.Duration) {
	if time.Since(t.fleetsAsked) < max(fleetPace*interval, time.Duration(t.fleetQuestions)*perServer) {
		return
	}
	t.fleetsAsked, t.fleetQuestions = time.Now(), 0
	for key, k := range t.known {
		if isFleet(key.Kind) && !k.asking {
			t.askFleet(k)
		}
	}
}
