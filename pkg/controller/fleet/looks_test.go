package fleet

import (
	"testing"
	"time"
)

// A small fleet is looked at every few seconds, and a large one costs no more looks a second.
func TestLooksAreAsManyAsAFleetOfAnySizeBears(t *testing.T) {
	for instances, want := range map[int]time.Duration{
		0: 3 * time.Second, 150: 3 * time.Second, 300: 6 * time.Second, 750: 15 * time.Second, 10_000: 15 * time.Second,
	} {
		if got := lookIntervalOf(instances); got != want {
			t.Errorf("with %d instances, each is looked at every %s, want %s", instances, got, want)
		}
	}
}
