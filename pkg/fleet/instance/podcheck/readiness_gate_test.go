package podcheck

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func TestGate(t *testing.T) {
	// Each step is what a look at the pod found, seconds after the start, and whether the gate is open after it.
	type step struct {
		at, required, served int
		open                 bool
	}
	cases := map[string]struct {
		open  bool
		steps []step
	}{
		"no zones":                        {steps: []step{{0, 0, 0, true}}},
		"opens when all are served":       {steps: []step{{0, 2, 0, false}, {1, 2, 1, false}, {2, 2, 2, true}}},
		"a new zone does not close it":    {steps: []step{{0, 1, 1, true}, {1, 2, 1, true}, {2, 2, 2, true}}},
		"the first zone does not close":   {steps: []step{{0, 0, 0, true}, {1, 1, 0, true}, {2, 1, 1, true}}},
		"closes when it comes back empty": {steps: []step{{0, 3, 3, true}, {1, 3, 0, false}, {2, 3, 2, false}, {3, 3, 3, true}}},
		"one zone lost does not close it": {steps: []step{{0, 3, 3, true}, {1, 3, 2, true}}},
		"one bad zone does not keep the others off": {steps: []step{
			{0, 3, 0, false}, {5, 3, 2, false}, {60, 3, 2, false}, {124, 3, 2, false}, {125, 3, 2, true}}},
		"progress prolongs the patience":                      {steps: []step{{0, 9, 1, false}, {110, 9, 2, false}, {125, 9, 2, false}, {230, 9, 2, true}}},
		"an empty server never opens":                         {steps: []step{{0, 3, 0, false}, {600, 3, 0, false}}},
		"keeps what it has after a restart of the controller": {open: true, steps: []step{{0, 3, 2, true}}},
		"an emptied pod stays closed":                         {steps: []step{{0, 2, 2, true}, {1, 2, 0, false}, {2, 2, 0, false}, {300, 2, 0, false}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			g := &readinessGate{open: c.open}
			for i, s := range c.steps {
				open, verdict := g.update(s.required, s.served, begin.Add(time.Duration(s.at)*time.Second))
				if open != s.open {
					t.Errorf("step %d: open %v (%s)", i, open, verdict.Message)
				}
				if verdict.Holds() != (s.served >= s.required) {
					t.Errorf("step %d: verdict %+v", i, verdict)
				}
			}
		})
	}
}

func TestGateOfRestartedPod(t *testing.T) {
	pod := &corev1.Pod{}
	pod.UID = "1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "named"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ZonesLoadedGate, Status: corev1.ConditionTrue}}
	all := newReadinessGates()
	first := all.gateOf(pod)
	if !first.open || all.gateOf(pod) != first {
		t.Error("a pod in service keeps its gate when the controller starts")
	}
	pod.Status.ContainerStatuses[0].RestartCount++
	if again := all.gateOf(pod); again == first || again.open {
		t.Error("a restarted container serves its zones again only once they have loaded")
	}
}

// TestLoadingInterval: a look lists every zone, so the more of them are still to come, the less often a pod is looked at.
func TestLoadingInterval(t *testing.T) {
	for _, c := range []struct {
		open  bool
		zones int
		since time.Duration
		want  time.Duration
	}{
		{false, 10, 0, minLoadingInterval},
		{false, 10, 16 * time.Second, 2 * time.Second},
		{false, 10, time.Hour, maxLoadingInterval},
		{false, 10_000, 0, maxLoadingInterval},
		{true, 10, 0, minLoadingInterval},
		{true, 2_000, 0, 2 * time.Second},
		{true, 10_000, 0, 10 * time.Second},
		{true, 10_000, time.Hour, 10 * time.Second},
	} {
		now := time.Now()
		g := &readinessGate{open: c.open, since: now.Add(-c.since)}
		if got := g.loadingInterval(c.zones, now); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
