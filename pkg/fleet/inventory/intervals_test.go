package inventory

import (
	"testing"
	"time"
)

// A small fleet is looked at every few seconds, and a large one costs no more looks a second.
func TestLooksAreAsManyAsAFleetOfAnySizeBears(t *testing.T) {
	for instances, want := range map[int]time.Duration{
		0: 3 * time.Second, 150: 3 * time.Second, 300: 6 * time.Second, 750: 15 * time.Second, 10_000: 15 * time.Second,
	} {
		if got := checkIntervalOf(instances, 10); got != want {
			t.Errorf("with %d instances, each is looked at every %s, want %s", instances, got, want)
		}
	}
}

// A look lists every zone: however many an instance has, looking at it costs the same share of the time.
func TestLooksAreAsManyAsZonesBear(t *testing.T) {
	for zones, want := range map[int][2]time.Duration{
		0:       {100 * time.Millisecond, 3 * time.Second},
		100:     {100 * time.Millisecond, 3 * time.Second},
		1_000:   {time.Second, 3 * time.Second},
		10_000:  {10 * time.Second, 10 * time.Second},
		100_000: {15 * time.Second, 15 * time.Second},
	} {
		if got := [2]time.Duration{DebounceFor(zones), checkIntervalOf(3, zones)}; got != want {
			t.Errorf("with %d zones, a look follows an event and another look after %s, want %s", zones, got, want)
		}
	}
}
