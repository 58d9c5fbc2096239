package fault

import (
	"testing"
	"time"
)

// An outage explains the end of a component only if it has lasted for as long as a lease is kept.
func TestOutage(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return begin.Add(d) }
	for name, test := range map[string]struct {
		end, at time.Time
		want    bool
	}{
		"short outage":          {after(8 * time.Second), after(9 * time.Second), false},
		"before the lease ends": {after(40 * time.Second), after(15 * time.Second), false},
		"lease lost":            {after(40 * time.Second), after(26 * time.Second), true},
		"lease lost, it lasts":  {time.Time{}, after(26 * time.Second), true},
		"just after it":         {after(24 * time.Second), after(30 * time.Second), true},
		"long after it":         {after(24 * time.Second), after(40 * time.Second), false},
	} {
		if got := (outage{begin, test.end}).explains(test.at); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
