package apply

import (
	"testing"
	"time"
)

// Whatever happens, an object's status is written once a second at most, and the last news is not lost.
func TestStatusLimiter(t *testing.T) {
	var l StatusLimiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	writes := 0
	for end := now.Add(10 * time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
		left := l.Delay("cluster", now, StatusInterval)
		if left == 0 {
			writes++
		} else if l.Delay("cluster", now.Add(left), StatusInterval) != 0 && writes == 0 {
			t.Fatalf("a write that waited %s has to wait again", left)
		} else if left != 0 {
			now = now.Add(left)
			writes++
		}
	}
	if writes < 9 || writes > 11 {
		t.Errorf("%d writes in 10 s", writes)
	}
	if l.Delay("other", now, StatusInterval) != 0 || len(l.last) > 2 {
		t.Errorf("another object waits, or %d are remembered", len(l.last))
	}
}

// A write of a list waits longer than one of anything else.
func TestStatusLimiterOfLists(t *testing.T) {
	var l StatusLimiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Delay("a", now, ListInterval)
	l.Delay("b", now.Add(2*time.Second), StatusInterval)
	if left := l.Delay("a", now.Add(4*time.Second), ListInterval); left != 6*time.Second {
		t.Errorf("a list waits %s more", left)
	}
	if left := l.Delay("a", now.Add(4*time.Second), StatusInterval); left != 0 {
		t.Errorf("a condition waits %s", left)
	}
}
