package kube

import (
	"slices"
	"sync"
)

// turns decides which tests run. In which order package testing has parallel tests go on is not defined.
type turns struct {
	mu sync.Mutex
	// free is how many more tests may run now.
	free    int
	waiting []*turn
}

// turn is that of one test.
type turn struct {
	first, ended bool
	began        chan struct{}
}

// addTest queues a test: one of the first before all others, else at the end. All tests are queued before one waits.
func (s *turns) addTest(first bool) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &turn{first: first, began: make(chan struct{})}
	at := len(s.waiting)
	if other := slices.IndexFunc(s.waiting, func(t *turn) bool { return !t.first }); first && other >= 0 {
		at = other
	}
	s.waiting = slices.Insert(s.waiting, at, t)
	return t
}

// wait returns when it is the turn of a test.
func (s *turns) wait(t *turn) {
	s.mu.Lock()
	s.beginTests()
	s.mu.Unlock()
	<-t.began
}

// end ends the turn of a test, so that another one begins, and reports whether it had not ended before. A test that has not begun will not.
func (s *turns) end(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return false
	}
	t.ended = true
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		s.free++
	}
	s.beginTests()
	return true
}

func (s *turns) beginTests() {
	for ; s.free > 0 && len(s.waiting) > 0; s.free-- {
		close(s.waiting[0].began)
		s.waiting = s.waiting[1:]
	}
}
