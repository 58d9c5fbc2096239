// Package liveness knows whether passes over zones happen. A process that answers its health check and does nothing is not healthy:
// the kubelet has to restart it, and somebody has to know.
package liveness

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// Defaults of Watchdog.Timeout and SingleNamespaceTimeout.
const (
	timeout                = time.Minute
	singleNamespaceTimeout = 10 * time.Minute
)

// Watchdog watches the passes over all zones. It is safe for concurrent use.
type Watchdog struct {
	// Timeout is how long no pass may end while some are due or under way. SingleNamespaceTimeout applies if all of these belong to one
	// namespace: its servers may be slow or hostile, and there is nothing else to do. Both are set before the first use.
	Timeout, SingleNamespaceTimeout time.Duration
	// due returns for each zone when its oldest change was noticed that no pass has taken yet.
	due func() map[types.NamespacedName]time.Time
	now func() time.Time

	mu      sync.Mutex
	running map[types.NamespacedName]time.Time
	ended   time.Time // when a pass ended last; at first, when the watchdog was made
}

// NewWatchdog returns a Watchdog without passes. due returns for each zone when its oldest change was noticed that no pass has taken.
func NewWatchdog(due func() map[types.NamespacedName]time.Time, now func() time.Time) *Watchdog {
	return &Watchdog{Timeout: timeout, SingleNamespaceTimeout: singleNamespaceTimeout, due: due, now: now, running: map[types.NamespacedName]time.Time{}, ended: now()}
}

// Watch returns a reconciler whose passes are watched.
func (w *Watchdog) Watch(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		w.begin(req.NamespacedName)
		defer w.end(req.NamespacedName)
		return r.Reconcile(ctx, req)
	})
}

func (w *Watchdog) begin(zone types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[zone] = w.now()
}

func (w *Watchdog) end(zone types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, zone)
	w.ended = w.now()
}

// pending is what waits: the oldest of the passes that run and are due.
type pending struct {
	oldest time.Time // zero if there is none
	// zone is the one of the oldest.
	zone types.NamespacedName
	// overdue has the namespaces of those that wait longer than Watchdog.Timeout.
	overdue map[string]bool
	ended   time.Time
}

func (w *Watchdog) pending() pending {
	waiting := map[types.NamespacedName]time.Time{}
	maps.Copy(waiting, w.due())
	w.mu.Lock()
	defer w.mu.Unlock()
	for zone, since := range w.running {
		waiting[zone] = status.Earlier(waiting[zone], since)
	}
	p := pending{ended: w.ended, overdue: map[string]bool{}}
	now := w.now()
	for zone, since := range waiting {
		if p.oldest.IsZero() || since.Before(p.oldest) {
			p.oldest, p.zone = since, zone
		}
		if now.Sub(since) > w.Timeout {
			p.overdue[zone.Namespace] = true
		}
	}
	return p
}

// Oldest returns how long the pass has run or been due that has for the longest; 0 if there is none.
func (w *Watchdog) Oldest() time.Duration {
	p := w.pending()
	if p.oldest.IsZero() {
		return 0
	}
	return w.now().Sub(p.oldest)
}

// Check implements healthz.Checker of controller-runtime. It fails when no pass has ended for a minute although some are due, or
// under way.
func (w *Watchdog) Check(*http.Request) error {
	p := w.pending()
	limit := w.Timeout
	if len(p.overdue) < 2 {
		limit = w.SingleNamespaceTimeout
	}
	now := w.now()
	if p.oldest.IsZero() || now.Sub(p.oldest) <= limit || now.Sub(p.ended) <= limit {
		return nil
	}
	return fmt.Errorf("no pass over any zone has ended for %s; that over zone %s has been due or under way for %s", now.Sub(p.ended).Round(time.Second), p.zone, now.Sub(p.oldest).Round(time.Second))
}
