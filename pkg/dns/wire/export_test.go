package wire

import (
	"testing"
	"time"
)

// ShiftClock makes our clock differ from everybody else's until the test ends.
func ShiftClock(t *testing.T, d time.Duration) {
	clock = func() time.Time { return time.Now().Add(d) }
	t.Cleanup(func() { clock = time.Now })
}
