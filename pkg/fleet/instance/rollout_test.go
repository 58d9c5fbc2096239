package instance

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestMayReplacePods(t *testing.T) {
	settled := rolloutState{ready: 1, healthy: true, settled: true}
	fresh := rolloutState{ready: 1, healthy: true}
	broken := rolloutState{}
	partly := rolloutState{ready: 1}
	exposed := rolloutState{ready: 1, exposed: true}
	changing := rolloutState{ready: 1, healthy: true, settled: true, changing: true}
	for name, c := range map[string]struct {
		self     rolloutState
		siblings []rolloutState
		want     bool
	}{
		"alone":                                         {settled, nil, true},
		"all are well":                                  {settled, []rolloutState{settled, settled}, true},
		"another one is being replaced":                 {settled, []rolloutState{settled, broken}, false},
		"another one has had its turn just now":         {settled, []rolloutState{changing}, false},
		"another one is back, and not known to be yet":  {settled, []rolloutState{fresh}, false},
		"itself has just come back":                     {fresh, []rolloutState{fresh}, false},
		"a broken one waits for no broken one":          {broken, []rolloutState{broken, broken}, true},
		"a broken one waits for no other":               {broken, []rolloutState{settled, changing}, true},
		"partly broken, another one serves":             {exposed, []rolloutState{broken, settled}, true},
		"partly broken, another one is partly, too":     {exposed, []rolloutState{partly}, true},
		"partly broken, the other has just had a turn":  {exposed, []rolloutState{changing}, false},
		"partly broken, and has the last ready pod":     {exposed, []rolloutState{broken}, false},
		"partly broken, and the broken pod goes first":  {partly, []rolloutState{broken}, true},
		"partly broken and alone, the broken one first": {partly, nil, true},
	} {
		if got := mayReplacePods(c.self, c.siblings); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestRolloutStateOf(t *testing.T) {
	set := func(generation, observed int64, updated, ready, available int32) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}}
		s.Generation = generation
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: observed, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: available}
		return s
	}
	for name, c := range map[string]struct {
		set  *appsv1.StatefulSet
		want rolloutState
	}{
		"well":          {set(2, 2, 2, 2, 2), rolloutState{ready: 2, healthy: true, settled: true}},
		"just ready":    {set(2, 2, 2, 2, 1), rolloutState{ready: 2, healthy: true}},
		"not seen yet":  {set(3, 2, 2, 2, 2), rolloutState{ready: 2}},
		"half replaced": {set(2, 2, 1, 2, 2), rolloutState{ready: 2}},
		"broken":        {set(2, 2, 2, 0, 0), rolloutState{}},
	} {
		if got := rolloutStateOf(c.set); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
