package heap

import (
	"strconv"
	"testing"
)

var kept []byte

// What a child takes is seen after it was given back, and what the parent takes is not.
func TestOfChild(t *testing.T) {
	cost := OfChild(t, func() string {
		kept = make([]byte, 200<<20)
		return strconv.Itoa(64 << 20)
	}, func(argument string) {
		size, err := strconv.Atoi(argument)
		if err != nil {
			t.Fatal(err)
		}
		kept = make([]byte, size)
		kept = nil
	})
	if cost.Bytes < 64<<20 || cost.Bytes > 96<<20 || cost.Time <= 0 {
		t.Errorf("a child that takes 64 MiB costs %+v", cost)
	}
	kept = nil
}
