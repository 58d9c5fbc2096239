package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Whatever happens, an object's status is written once a second at most, and the last news is not lost.
func TestPace(t *testing.T) {
	var p pace
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	writes := 0
	for end := now.Add(10 * time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
		left := p.wait("cluster", now, statusPause)
		if left == 0 {
			writes++
		} else if p.wait("cluster", now.Add(left), statusPause) != 0 && writes == 0 {
			t.Fatalf("a write that waited %s has to wait again", left)
		} else if left != 0 {
			now = now.Add(left)
			writes++
		}
	}
	if writes < 9 || writes > 11 {
		t.Errorf("%d writes in 10 s", writes)
	}
	if p.wait("other", now, statusPause) != 0 || len(p.last) > 2 {
		t.Errorf("another object waits, or %d are remembered", len(p.last))
	}
}

// The list of zones alone waits, the longer the more there are; what people look at does not wait for it.
func TestPaceOfLists(t *testing.T) {
	instance := func(zones int, reason string) v1beta1.Bind9InstanceStatus {
		return v1beta1.Bind9InstanceStatus{
			ZonesCount: int32(zones), Zones: make([]v1beta1.ZoneReference, zones),
			Conditions: []metav1.Condition{{Type: status.Ready, Reason: reason}},
		}
	}
	for name, c := range map[string]struct {
		last, next v1beta1.Bind9InstanceStatus
		want       time.Duration
	}{
		"a few zones":          {instance(1, status.AllReady), instance(2, status.AllReady), statusPause},
		"five hundred":         {instance(499, status.AllReady), instance(500, status.AllReady), 5 * time.Second},
		"a thousand":           {instance(999, status.AllReady), instance(1000, status.AllReady), listPause},
		"a condition, as well": {instance(999, status.AllReady), instance(1000, status.NotReady), statusPause},
	} {
		if got := pauseBefore(c.last, c.next); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	var p pace
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.wait("a", now, listPause)
	p.wait("b", now.Add(2*time.Second), statusPause)
	if left := p.wait("a", now.Add(4*time.Second), listPause); left != 6*time.Second {
		t.Errorf("a list waits %s more", left)
	}
	if left := p.wait("a", now.Add(4*time.Second), statusPause); left != 0 {
		t.Errorf("a condition waits %s", left)
	}
}
