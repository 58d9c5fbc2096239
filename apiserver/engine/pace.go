package engine

import (
	"time"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// To tell a thousand watchers takes longer than a change takes to be on all servers: told of every step of its way, they would
// hear of the end last. So the more there are to be told, the longer is waited before they are told that something is on its
// way, and most of it has arrived by then. That all of a zone is in step, which sums up what is told of its objects, waits as
// long, for these to go first. What has arrived or gone wrong is told at once, and to a few watchers everything is.
const (
	// perWatcher is about what one more watcher adds to the time that telling takes, kube-apiserver's part included.
	perWatcher = 50 * time.Microsecond
	// worthIt is the shortest time, longest the longest, that is waited.
	worthIt, longest = 5 * time.Millisecond, 50 * time.Millisecond
)

// pace is how long watchers wait to be told of what is on its way. Those of a single object do not count: however many they
// are, few are told of each. A watch that is about to begin is to begin with the present: nobody waits then.
func (t *tracker) pace() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.joining) > 0 {
		return 0
	}
	many := 0
	for s := range t.subs {
		if !s.single {
			many++
		}
	}
	if d := time.Duration(many) * perWatcher; d >= worthIt {
		return min(d, longest)
	}
	return 0
}

// putOff tells whether watchers wait to be told of an object's state. It is judged again when they have waited.
func (t *tracker) putOff(k *known, s *syncv1.SyncStatus, wait time.Duration) bool {
	sumsUp := k.key.Kind == syncstatus.ZoneKind.Kind && s.Status.InSync
	if wait == 0 || s.Status.Phase != syncv1.PhasePropagating && !sumsUp || !k.isTold || k.digest == t.engine.memory.digest(s) {
		return false
	}
	if t.due.IsZero() {
		t.due = time.Now().Add(wait)
		time.AfterFunc(wait, t.wake)
	}
	return true
}

// recall has everything judged again that was put off, when watchers have waited for it or wait no more. It gives how long
// they wait for what is judged now.
func (t *tracker) recall() time.Duration {
	wait := t.pace()
	if t.due.IsZero() || wait > 0 && time.Now().Before(t.due) {
		return wait
	}
	t.due = time.Time{}
	for _, w := range t.zones {
		if len(w.suspects) > 0 {
			w.told = false
			t.dirty[w] = struct{}{}
		}
	}
	return 0
}
