package podcheck

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// Pace of requests to a sidecar that fails.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
	// errorTolerance is for how long a pod in service keeps its good status while its sidecar does not answer.
	errorTolerance = 5 * time.Second
)

// sidecarFailed records that the sidecar failed once more. It returns for how long it has been failing, and when to try
// again: less and less often, and seldom from the start when the error does not pass by itself.
func (g *readinessGate) sidecarFailed(transient bool, now time.Time) (since, retry time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failing.IsZero() {
		g.failing, g.retry = now, firstRetry
	} else {
		g.retry = min(2*g.retry, lastRetry)
	}
	if !transient {
		g.retry = lastRetry
	}
	return now.Sub(g.failing), g.retry
}

// sidecarSucceeded records that the sidecar answers as it should.
func (g *readinessGate) sidecarSucceeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = time.Time{}
}

// sidecarProblem judges a pod whose sidecar failed. One that was ready, and still is for the kubelet, keeps its good status for a moment:
// what passes by itself is not reported.
func sidecarProblem(err error, gate *readinessGate, pod *corev1.Pod, wasReady bool, now time.Time) podResult {
	answer := &bindcar.Error{Reason: status.BindcarUnreachable, Message: "cannot connect to Bindcar API"}
	transient := !errors.As(err, &answer) || answer.Transient()
	since, retry := gate.sidecarFailed(transient, now)
	result := podResult{serving: status.False(answer.Reason, answer.Sentence()), requeue: retry, terminal: !transient}
	if transient && since < errorTolerance && wasReady && status.PodReady(pod) {
		result.serving = status.True(status.ReconcileSucceeded, "")
	}
	return result
}
