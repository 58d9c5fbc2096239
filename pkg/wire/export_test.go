package wire

import (
	"testing"
	"time"
)

// LimitTransfers makes transfers end at another size until the test ends.
func LimitTransfers(t *testing.T, size int) {
	was := maxTransfer
	maxTransfer = size
	t.Cleanup(func() { maxTransfer = was })
}

// ShiftClock makes our clock differ from everybody else's until the test ends.
func ShiftClock(t *testing.T, d time.Duration) {
	clock = func() time.Time { return time.Now().Add(d) }
	t.Cleanup(func() { clock = time.Now })
}
