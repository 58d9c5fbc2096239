package refresh

import (
	"testing"
	"time"
)

// A zone that has just changed is asked about each time, and one at rest less and less, but as often as one of a server with a stream.
func TestRestFor(t *testing.T) {
	const interval = 500 * time.Millisecond
	for rest, want := range map[time.Duration]time.Duration{
		0: interval / 2, 5 * time.Second: interval / 2, 20 * time.Second: time.Second, 100 * time.Second: 5 * time.Second, time.Hour: pollRounds * interval,
	} {
		if got := restFor(rest, interval); got != want {
			t.Errorf("after %s at rest every %s, want %s", rest, got, want)
		}
	}
	asked := 0
	for now, last := time.Duration(0), time.Duration(0); now < time.Hour; now += interval {
		if now-last >= restFor(now, interval) {
			last, asked = now, asked+1
		}
	}
	if asked > 500 { // and not 7200
		t.Errorf("a zone at rest is asked about %d times in an hour", asked)
	}
}
