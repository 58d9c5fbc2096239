package instance

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMayReplacePods(t *testing.T) {
	settled := rolloutState{ready: 1, healthy: true, settled: true}
	fresh := rolloutState{ready: 1, healthy: true}
	broken := rolloutState{}
	partly := rolloutState{ready: 1}
	exposed := rolloutState{ready: 1, exposed: true}
	restarting := rolloutState{restarting: true}
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
		"one that was restarted waits for a broken one": {restarting, []rolloutState{broken}, false},
		"one that was restarted, the others are well":   {restarting, []rolloutState{settled}, true},
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

func TestRestarting(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	for name, c := range map[string]struct {
		started, changed, deleted *metav1.Time
		ready                     corev1.ConditionStatus
		want                      bool
	}{
		"in service":                {ago(time.Hour), ago(time.Second), nil, corev1.ConditionTrue, false},
		"restarted":                 {ago(time.Hour), ago(time.Second), nil, corev1.ConditionFalse, true},
		"its node is silent":        {ago(time.Hour), ago(time.Second), nil, corev1.ConditionUnknown, true},
		"out of service for long":   {ago(time.Hour), ago(restartTime), nil, corev1.ConditionFalse, false},
		"never was in service":      {ago(10 * time.Second), ago(9 * time.Second), nil, corev1.ConditionFalse, false},
		"is being deleted":          {ago(time.Hour), ago(time.Second), ago(time.Second), corev1.ConditionFalse, false},
		"nobody has looked at it":   {nil, ago(time.Second), nil, corev1.ConditionFalse, false},
		"soon after it was started": {ago(10 * time.Second), ago(time.Second), nil, corev1.ConditionFalse, true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: c.deleted}}
		pod.Status.StartTime = c.started
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: *ago(time.Second)},
			{Type: corev1.PodReady, Status: c.ready, LastTransitionTime: *c.changed}}
		if got := isRestarting(pod, now); got != c.want {
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
