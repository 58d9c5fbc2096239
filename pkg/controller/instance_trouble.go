package controller

import "time"

// Pace of questions to a sidecar that does not do as asked.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
	// patience is for how long a pod in service keeps its good status while its sidecar is silent.
	patience = 5 * time.Second
)

// trouble notes that the sidecar failed once more. It gives for how long it has been failing, and when to ask again:
// less and less often, and what does not pass by itself seldom from the first.
func (g *gate) trouble(transient bool, now time.Time) (since, retry time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failing.IsZero() {
		g.failing, g.retry = now, firstRetry
	} else {
		g.retry = min(2*g.retry, lastRetry)
	}
	if !transient {
		g.retry = lastRetry
	}
	return now.Sub(g.failing), g.retry
}

// calm notes that the sidecar answers as it should.
func (g *gate) calm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failing = time.Time{}
}

// loadingPause is how soon to look again at a pod that lacks zones.
func (g *gate) loadingPause(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(max(loadingPause, now.Sub(g.since)/8), maxLoadingPause)
}
