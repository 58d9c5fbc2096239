package rrset

import (
	"math"
	"testing"
)

func TestSerialLess(t *testing.T) {
	const half = 1 << 31
	for _, test := range []struct {
		a, b uint32
		want bool
	}{
		{0, 1, true}, {1, 0, false}, {44, 100, true}, {5, 5, false},
		{math.MaxUint32, 0, true}, {math.MaxUint32, 1, true}, {1, math.MaxUint32, false},
		{0, half - 1, true}, {half - 1, 0, false},
		{0, half, false}, {half, 0, false}, // RFC 1982 section 3.2 leaves this pair without an order.
		{0, half + 1, false}, {half + 1, 0, true},
		{7, half + 6, true}, {7, half + 7, false}, {7, half + 8, false},
	} {
		if got := SerialLess(test.a, test.b); got != test.want {
			t.Errorf("SerialLess(%d, %d) = %v", test.a, test.b, got)
		}
	}
}

func TestAddSerial(t *testing.T) {
	for _, test := range []struct{ s, n, want uint32 }{
		{1, 1, 2}, {0, 0, 0}, {0, 1, 1},
		{math.MaxUint32, 1, 1}, {math.MaxUint32 - 1, 1, math.MaxUint32}, {math.MaxUint32 - 1, 2, 1},
		{math.MaxUint32 - 1, 3, 2}, {math.MaxUint32, 0, math.MaxUint32},
	} {
		if got := AddSerial(test.s, test.n); got != test.want {
			t.Errorf("AddSerial(%d, %d) = %d, want %d", test.s, test.n, got, test.want)
		}
	}
}

func TestNextSerial(t *testing.T) {
	const now = 1_800_000_000
	for name, test := range map[string]struct{ current, now, want uint32 }{
		"at zero":                        {0, now, now},
		"at zero, clock at zero":         {0, 0, 1},
		"at zero, clock out of reach":    {0, 1<<31 + 1, 1},
		"behind the clock":               {now - 10, now, now},
		"second change in a second":      {now, now, now + 1},
		"ahead of the clock":             {2_026_010_101, now, 2_026_010_102},
		"small serial":                   {7, now, now},
		"clock at zero":                  {math.MaxUint32, 0, 1},
		"last serial, clock in reach":    {math.MaxUint32, now, now},
		"last serial, clock before":      {math.MaxUint32, math.MaxUint32 - 5, 1},
		"half of all serials away":       {now + 1<<31, now, now + 1<<31 + 1},
		"clock just within reach":        {now + 1<<31 + 1, now, now},
		"clock out of reach and last":    {math.MaxUint32, math.MaxUint32, 1},
		"serial after the clock's wrap":  {1, math.MaxUint32, 2},
		"clock after the serial's wrap":  {math.MaxUint32 - 3, 2, 2},
		"clock and serial just wrapping": {math.MaxUint32, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NextSerial(test.current, test.now); got != test.want {
				t.Errorf("NextSerial(%d, %d) = %d, want %d", test.current, test.now, got, test.want)
			}
		})
	}
}

func FuzzSerial(f *testing.F) {
	f.Add(uint32(0), uint32(1), uint32(2))
	f.Add(uint32(math.MaxUint32), uint32(1), uint32(1))
	f.Add(uint32(1<<31), uint32(0), uint32(math.MaxInt32))
	f.Fuzz(func(t *testing.T, a, b, n uint32) {
		if SerialLess(a, b) && SerialLess(b, a) {
			t.Fatalf("%d and %d are less than each other", a, b)
		}
		if a != b && b-a != 1<<31 && !SerialLess(a, b) && !SerialLess(b, a) {
			t.Fatalf("%d and %d have no order", a, b)
		}
		if next := NextSerial(a, b); next == 0 || !SerialLess(a, next) {
			t.Fatalf("NextSerial(%d, %d) = %d", a, b, next)
		}
		n %= math.MaxInt32 // 0 to 2^31-2.
		if sum := AddSerial(a, n); n > 0 && (sum == 0 || !SerialLess(a, sum)) {
			t.Fatalf("AddSerial(%d, %d) = %d", a, n, sum)
		}
		if x, y := AddSerial(AddSerial(a, n/2), n-n/2), AddSerial(a, n); x != y {
			t.Fatalf("%d steps from %d: %d at once, %d in two", n, a, y, x)
		}
	})
}
