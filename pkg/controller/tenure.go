package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errTenureOver ends a pass under way.
var errTenureOver = errors.New("the controller has not renewed its lease in time, and another one may change the servers by now")

// tenure is the time in which no other process holds the lease: it ends tenureDuration after the last renewal, by the monotonic clock, and
// the lease is taken later than that. It begins anew with the next renewal. A nil tenure does not end.
type tenure struct {
	mu    sync.Mutex
	until time.Time
	// term is done when the tenure is over, and replaced when it begins anew.
	term  context.Context
	end   context.CancelCauseFunc
	timer *time.Timer
}

// extend moves the end. renewed is when the renewal was sent: others see it later.
func (t *tenure) extend(renewed time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = renewed.Add(tenureDuration)
	if t.term == nil || t.term.Err() != nil {
		t.term, t.end = context.WithCancelCause(context.Background())
	}
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(t.until), t.expire)
		return
	}
	t.timer.Reset(time.Until(t.until))
}

// expire ends the tenure unless it has been extended meanwhile.
func (t *tenure) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !time.Now().Before(t.until) {
		t.end(errTenureOver)
	}
}

// resign ends the tenure at once.
func (t *tenure) resign() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until = (time.Time{}); t.end != nil {
		t.end(errTenureOver)
	}
}

// current returns a context that is done when the tenure is over; ok is false if it is over now.
func (t *tenure) current() (term context.Context, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term, time.Now().Before(t.until) // The timer of a process that was stopped is late.
}

// guard has passes happen within the tenure alone: none begins outside of it, and the context of those under way ends with it.
func (t *tenure) guard(passes reconcile.Reconciler) reconcile.Reconciler {
	if t == nil {
		return passes
	}
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) { //nolint:contextcheck // the tenure has one of its own
		term, ok := t.current()
		if !ok {
			return ctrl.Result{RequeueAfter: retryPeriod}, nil
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(term, func() { cancel(context.Cause(term)) })() //nolint:contextcheck // the tenure's
		return passes.Reconcile(ctx, req)
	})
}
