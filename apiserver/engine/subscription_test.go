package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// A watch ends after two hours, whatever its client has asked for.
func TestWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day, end := context.WithTimeout(t.Context(), 24*time.Hour)
		defer end()
		all := Query{}
		all.setDefaults()
		s, ctx := newSubscription(day, all)
		s.count = func(watch.EventType) {}
		began := time.Now()
		go s.pump(ctx, func() {})
		for range s.ResultChan() {
			t.Error("an event")
		}
		if lasted := time.Since(began); lasted != 2*time.Hour {
			t.Errorf("the watch lasted %s", lasted)
		}
	})
}
