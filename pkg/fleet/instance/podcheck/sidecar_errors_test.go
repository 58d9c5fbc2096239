package podcheck

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// What a pod's condition says while its sidecar fails, and when it is asked again.
func TestSidecarErrors(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	silent := &bindcar.Error{Reason: status.BindcarUnreachable, Message: "cannot connect to Bindcar API"}
	locked := &bindcar.Error{Code: http.StatusForbidden, Reason: status.BindcarAuthFailed, Message: "failed to authenticate with Bindcar API (403)"}
	type look struct {
		at       time.Duration
		err      error // nil: the sidecar answers
		reason   string
		wait     time.Duration
		terminal bool
	}
	cases := map[string]struct {
		wasReady, podReady bool
		looks              []look
	}{
		"a moment of silence is not told": {true, true, []look{
			{0, silent, "", firstRetry, false}, {time.Second, silent, "", 2 * firstRetry, false}, {2 * time.Second, nil, "", 0, false}}},
		"silence that lasts is": {true, true, []look{
			{0, silent, "", firstRetry, false}, {errorTolerance, silent, status.BindcarUnreachable, 2 * firstRetry, false}}},
		"the kubelet's word counts": {true, false, []look{{0, silent, status.BindcarUnreachable, firstRetry, false}}},
		"one that was never ready":  {false, true, []look{{0, errors.New("no such thing"), status.BindcarUnreachable, firstRetry, false}}},
		"the clock starts anew": {true, true, []look{
			{0, silent, "", firstRetry, false}, {4 * time.Second, nil, "", 0, false}, {8 * time.Second, silent, "", firstRetry, false}}},
		"only a person can help": {true, true, []look{{0, locked, status.BindcarAuthFailed, lastRetry, true}, {time.Hour, locked, status.BindcarAuthFailed, lastRetry, true}}},
		"less and less often": {false, false, []look{
			{0, silent, status.BindcarUnreachable, firstRetry, false}, {1, silent, status.BindcarUnreachable, time.Second, false},
			{2, silent, status.BindcarUnreachable, 2 * time.Second, false}, {3, silent, status.BindcarUnreachable, 4 * time.Second, false},
			{4, silent, status.BindcarUnreachable, 8 * time.Second, false}, {5, silent, status.BindcarUnreachable, 16 * time.Second, false},
			{6, silent, status.BindcarUnreachable, lastRetry, false}, {7, silent, status.BindcarUnreachable, lastRetry, false}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			if c.podReady {
				pod.Status.Conditions[0].Status = corev1.ConditionTrue
			}
			g := &readinessGate{}
			for i, at := range c.looks {
				if at.err == nil {
					g.sidecarSucceeded()
					continue
				}
				got := sidecarProblem(at.err, g, pod, c.wasReady, begin.Add(at.at))
				if good := got.serving.Holds(); good != (at.reason == "") || !good && got.serving.Reason != at.reason || got.requeue != at.wait || got.terminal != at.terminal {
					t.Errorf("look %d: %+v", i, got)
				}
			}
		})
	}
}
