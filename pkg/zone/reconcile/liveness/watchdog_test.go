package liveness

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// world has a clock, and zones with changes that no pass has taken.
type world struct {
	*Watchdog
	time    time.Time
	changes map[types.NamespacedName]time.Time
}

func newWorld() *world {
	w := &world{time: time.Unix(1e9, 0), changes: map[types.NamespacedName]time.Time{}}
	w.Watchdog = NewWatchdog(func() map[types.NamespacedName]time.Time { return w.changes }, func() time.Time { return w.time })
	return w
}

func zoneOf(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: "zone"}
}

// expect requires an age of the oldest pass, and a verdict.
func (w *world) expect(t *testing.T, what string, oldest time.Duration, healthy bool) {
	t.Helper()
	err := w.Check(nil)
	if got := w.Oldest(); got != oldest || (err == nil) != healthy {
		t.Errorf("%s: the oldest pass is of %s, want %s; health: %v", what, got, oldest, err)
	}
}

func TestIdleIsHealthy(t *testing.T) {
	w := newWorld()
	w.time = w.time.Add(time.Hour)
	w.expect(t, "nothing to do", 0, true)
	w.begin(zoneOf("a"))
	w.changes[zoneOf("b")] = w.time
	w.expect(t, "it has just begun", 0, true)
	w.time = w.time.Add(30 * time.Second)
	w.expect(t, "after half a minute", 30*time.Second, true)
}

// As long as passes end, the process does something, however long one of them takes.
func TestPassesThatEndAreHealthy(t *testing.T) {
	w := newWorld()
	w.begin(zoneOf("slow"))
	w.begin(zoneOf("slower"))
	for range 100 {
		w.time = w.time.Add(30 * time.Second)
		w.begin(zoneOf("bank"))
		w.end(zoneOf("bank"))
	}
	w.expect(t, "others end", 50*time.Minute, true)
}

// Passes of several namespaces that do not end are a process that hangs, and so are changes that no pass takes.
func TestHangingPassesAreNot(t *testing.T) {
	for name, hang := range map[string]func(w *world){
		"they run":   func(w *world) { w.begin(zoneOf("a")); w.begin(zoneOf("b")) },
		"one is due": func(w *world) { w.begin(zoneOf("a")); w.changes[zoneOf("b")] = w.time },
		"both are":   func(w *world) { w.changes[zoneOf("a")], w.changes[zoneOf("b")] = w.time, w.time },
	} {
		w := newWorld()
		hang(w)
		w.time = w.time.Add(time.Minute)
		w.expect(t, name+", a minute", time.Minute, true)
		w.time = w.time.Add(time.Second)
		w.expect(t, name+", for longer", 61*time.Second, false)
		w.end(zoneOf("a"))
		if err := w.Check(nil); err != nil {
			t.Errorf("%s: one has ended: %v", name, err)
		}
	}
}

// A namespace whose servers are slow, and which is alone, does not have the process restarted for ten minutes.
func TestLoneNamespace(t *testing.T) {
	w := newWorld()
	w.begin(zoneOf("tarpit"))
	w.changes[types.NamespacedName{Namespace: "tarpit", Name: "other"}] = w.time
	w.time = w.time.Add(10 * time.Minute)
	w.expect(t, "ten minutes", 10*time.Minute, true)
	w.time = w.time.Add(time.Second)
	w.expect(t, "longer", 10*time.Minute+time.Second, false)
}

// A pass counts from its beginning to its end, whatever it returns.
func TestWatch(t *testing.T) {
	w := newWorld()
	r := w.Watch(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		w.time = w.time.Add(5 * time.Second)
		w.expect(t, "under way", 5*time.Second, true)
		return ctrl.Result{}, context.Canceled
	}))
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: zoneOf("a")}); err == nil {
		t.Error("the error is lost")
	}
	w.expect(t, "ended", 0, true)
}
