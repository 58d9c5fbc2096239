package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

func TestMayRoll(t *testing.T) {
	settled := member{ready: 1, healthy: true, settled: true}
	fresh := member{ready: 1, healthy: true}
	broken := member{}
	partly := member{ready: 1}
	exposed := member{ready: 1, exposed: true}
	turning := member{ready: 1, healthy: true, settled: true, turning: true}
	for name, c := range map[string]struct {
		self     member
		siblings []member
		want     bool
	}{
		"alone":                                         {settled, nil, true},
		"all are well":                                  {settled, []member{settled, settled}, true},
		"another one is being replaced":                 {settled, []member{settled, broken}, false},
		"another one has had its turn just now":         {settled, []member{turning}, false},
		"another one is back, and not known to be yet":  {settled, []member{fresh}, false},
		"itself has just come back":                     {fresh, []member{fresh}, false},
		"a broken one waits for no broken one":          {broken, []member{broken, broken}, true},
		"a broken one waits for no other":               {broken, []member{settled, turning}, true},
		"partly broken, another one serves":             {exposed, []member{broken, settled}, true},
		"partly broken, another one is partly, too":     {exposed, []member{partly}, true},
		"partly broken, the other has just had a turn":  {exposed, []member{turning}, false},
		"partly broken, and has the last ready pod":     {exposed, []member{broken}, false},
		"partly broken, and the broken pod goes first":  {partly, []member{broken}, true},
		"partly broken and alone, the broken one first": {partly, nil, true},
	} {
		if got := mayRoll(c.self, c.siblings); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMemberOf(t *testing.T) {
	set := func(generation, observed int64, updated, ready, available int32) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)}}
		s.Generation = generation
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: observed, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: available}
		return s
	}
	for name, c := range map[string]struct {
		set  *appsv1.StatefulSet
		want member
	}{
		"well":          {set(2, 2, 2, 2, 2), member{ready: 2, healthy: true, settled: true}},
		"just ready":    {set(2, 2, 2, 2, 1), member{ready: 2, healthy: true}},
		"not seen yet":  {set(3, 2, 2, 2, 2), member{ready: 2}},
		"half replaced": {set(2, 2, 1, 2, 2), member{ready: 2}},
		"broken":        {set(2, 2, 2, 0, 0), member{}},
	} {
		if got := memberOf(c.set); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestLeaves: a zone leaves its old servers when the new ones have it; it stays for ever where nobody else serves it.
func TestLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		serving, of int
		waited      time.Duration
		want        bool
	}{
		"nobody is to have it":          {0, 0, 0, true},
		"none has it yet":               {0, 2, time.Second, false},
		"one has it":                    {1, 2, time.Second, false},
		"all have it":                   {2, 2, 0, true},
		"the second never gets it":      {1, 2, stuckAfter, true},
		"none ever gets it, for a year": {0, 2, 365 * 24 * time.Hour, false},
	} {
		if got := leaves(c.serving, c.of, c.waited); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestArrived: a zone has arrived on the instances that it is Configured on, of those that are to serve it.
func TestArrived(t *testing.T) {
	instance := func(name string) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "new"}}
	}
	zone := func(name string, edit func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.DNSZoneSpec{ZoneName: name, ClusterRef: "new"}}
		for of, state := range map[string]v1beta1.ZoneInstanceStatus{"a": v1beta1.ZoneConfigured, "b": v1beta1.ZoneClaimed, "old": v1beta1.ZoneConfigured} {
			z.Status.Bind9Instances = append(z.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: "dns", Name: of, Status: state})
		}
		edit(z)
		return z
	}
	all := homesOf([]*v1beta1.DNSZone{
		zone("moves.test", func(*v1beta1.DNSZone) {}),
		zone("goes.test", func(z *v1beta1.DNSZone) { z.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }),
		zone("twice.test", func(z *v1beta1.DNSZone) {
			z.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, Reason: status.DuplicateZone}}
		}),
	}, []*v1beta1.Bind9Instance{instance("a"), instance("b")})
	for name, want := range map[string][2]int{"moves.test": {1, 2}, "goes.test": {0, 0}, "twice.test": {0, 0}, "unknown.test": {0, 0}} {
		if serving, of := all.arrived(name); [2]int{serving, of} != want {
			t.Errorf("%s: %d of %d, want %d of %d", name, serving, of, want[0], want[1])
		}
	}
}
