// Package share divides a bounded amount, such as bytes of memory, among those who use it, such as namespaces: none takes more than a
// share, so that others find some left. It never waits.
package share

import (
	"errors"
	"sync"
)

// What Take answers to whoever gets nothing.
var (
	// ErrShare: the user would have more than a share.
	ErrShare = errors.New("more than a share of it")
	// ErrTotal: all users together would have more than there is.
	ErrTotal = errors.New("more than there is")
)

// Pool is an amount that users take parts of. It is safe for concurrent use.
type Pool struct {
	total, share int64

	mu   sync.Mutex
	used int64
	of   map[string]int64
}

// NewPool makes the pool of an amount of which one user has at most a share.
func NewPool(total, share int64) *Pool {
	return &Pool{total: total, share: share, of: map[string]int64{}}
}

// Share returns what one user has at most.
func (p *Pool) Share() int64 { return p.share }

// Take takes n of the pool for a user, all or nothing: the error is ErrShare or ErrTotal.
func (p *Pool) Take(user string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.of[user]+n > p.share:
		return ErrShare
	case p.used+n > p.total:
		return ErrTotal
	}
	p.add(user, n)
	return nil
}

// Add takes n for a user, whatever is left; less than 0 gives back.
func (p *Pool) Add(user string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(user, n)
}

func (p *Pool) add(user string, n int64) {
	p.used += n
	if p.of[user] += n; p.of[user] == 0 {
		delete(p.of, user)
	}
}

// Used returns how much is taken.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
