package statistics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// TestMetricsAreNotAskedForTooOften: whoever asks for metrics all the time does not ask named all the time.
func TestMetricsAreNotAskedForTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m := &Collector{Read: func(context.Context) (bindcar.Statistics, error) {
			asked++
			return bindcar.Statistics{}, nil
		}}
		for range 100 {
			if _, err := m.latestStatistics(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(maxAge / 10)
		}
		if asked != 10 {
			t.Errorf("named was asked %d times", asked)
		}
	})
}
