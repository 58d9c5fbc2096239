package kube

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// shortest is the time between two checks, at first; longest is that of a long wait. Most checks ask kube-apiserver or every server of
// a test, and many tests wait at the same time: with checks that follow each other at once, the waiting takes the processors from what
// is waited for.
const (
	shortest = 50 * time.Millisecond
	longest  = 500 * time.Millisecond
)

// Eventually repeats check until it returns nil, and fails the test with its last error when it has not done so in time.
func Eventually(t testing.TB, limit Patience, check func(context.Context) error) {
	t.Helper()
	repeat(t, limit, wait.Backoff{Duration: shortest, Factor: 1.1, Steps: 100, Cap: longest}, true, check)
}

// Throughout is Eventually for a check that also judges every moment until then: it is repeated all the time.
func Throughout(t testing.TB, limit Patience, check func(context.Context) error) {
	t.Helper()
	repeat(t, limit, wait.Backoff{Duration: shortest}, false, check)
}

// repeat waits from the end of a check, or from its beginning.
func repeat(t testing.TB, limit Patience, pause wait.Backoff, fromEnd bool, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit.Duration())
	defer cancel()
	var last error
	err := pause.DelayFunc().Until(ctx, true, fromEnd, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil || last == nil { // an error of the last moment may be of no other cause than the time limit
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %v", limit, last)
	}
}
