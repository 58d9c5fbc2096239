package kube

import (
	"testing"
	"time"
)

func TestScale(t *testing.T) {
	for name, tc := range map[string]struct {
		environment string
		measured    time.Duration
		want        float64
	}{
		"usual":        {"", usualSorting, 1},
		"fast":         {"", usualSorting / 5, 1},
		"slow":         {"", usualSorting * 3 / 2, 1.5},
		"no processor": {"", time.Hour, longestScale},
		"asked for":    {"3", time.Hour, 3},
		"not measured": {"1", time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scale(tc.environment, func() time.Duration { return tc.measured }); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestScaleOfNoNumber(t *testing.T) {
	for _, environment := range []string{"fast", "0", "-1", "1000", "2s"} {
		t.Run(environment, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			scale(environment, measureSorting)
		})
	}
}
