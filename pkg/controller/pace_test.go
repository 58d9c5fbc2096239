package controller

import (
	"testing"
	"time"
)

// Whatever happens, an object's status is written once a second at most, and the last news is not lost.
func TestPace(t *testing.T) {
	var p pace
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	writes := 0
	for end := now.Add(10 * time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
		left := p.wait("cluster", now)
		if left == 0 {
			writes++
		} else if p.wait("cluster", now.Add(left)) != 0 && writes == 0 {
			t.Fatalf("a write that waited %s has to wait again", left)
		} else if left != 0 {
			now = now.Add(left)
			writes++
		}
	}
	if writes < 9 || writes > 11 {
		t.Errorf("%d writes in 10 s", writes)
	}
	if p.wait("other", now) != 0 || len(p.last) > 2 {
		t.Errorf("another object waits, or %d are remembered", len(p.last))
	}
}
