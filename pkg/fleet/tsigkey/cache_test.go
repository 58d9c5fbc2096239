package tsigkey

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

const maxAge = time.Minute

// secrets stands for the API server: the keys in Secrets, and how often each was read.
type secrets struct {
	mu    sync.Mutex
	keys  map[string]*wire.Key
	reads map[string]int
	delay time.Duration
}

func (s *secrets) read(ctx context.Context, name types.NamespacedName) (*wire.Key, error) {
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[name.Name]++
	if key := s.keys[name.Name]; key != nil {
		return key, nil
	}
	return nil, errors.New("not found")
}

func newSecrets(names ...string) *secrets {
	s := &secrets{keys: map[string]*wire.Key{}, reads: map[string]int{}}
	for _, name := range names {
		s.keys[name] = &wire.Key{Name: name}
	}
	return s
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "dns", Name: name}
}

// bubble runs a test with a clock of its own.
func bubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func TestCache(t *testing.T) {
	t.Run("a key is read again when it is old, and dropped when it is not used", bubble(func(t *testing.T) {
		s := newSecrets("a", "b")
		c := NewCache(s.read, maxAge, 0)
		for _, name := range []string{"a", "b", "a", "missing"} {
			_, _ = c.Get(t.Context(), named(name))
		}
		time.Sleep(maxAge)
		if key, err := c.Get(t.Context(), named("a")); err != nil || key != s.keys["a"] || s.reads["a"] != 2 || c.entries.Len() != 1 {
			t.Errorf("%v, %v after %d reads, %d keys cached", key, err, s.reads["a"], c.entries.Len())
		}
	}))
	t.Run("a key that cannot be read again is used for a while, unless a server refuses it", bubble(func(t *testing.T) {
		s := newSecrets("a")
		const grace = maxAge / 2
		c := NewCache(s.read, maxAge, grace)
		key, _ := c.Get(t.Context(), named("a"))
		delete(s.keys, "a")
		for _, wait := range []time.Duration{maxAge, failureAge / 2, failureAge} {
			time.Sleep(wait)
			if got, err := c.Get(t.Context(), named("a")); err != nil || got != key {
				t.Errorf("%v, %v after %d reads", got, err, s.reads["a"])
			}
		}
		if s.reads["a"] != 3 {
			t.Errorf("%d reads", s.reads["a"])
		}
		time.Sleep(grace)
		if got, err := c.Get(t.Context(), named("a")); err == nil {
			t.Errorf("%v after its grace", got)
		}
		s.keys["a"] = key
		time.Sleep(failureAge)
		_, _ = c.Get(t.Context(), named("a"))
		delete(s.keys, "a")
		c.Invalidate(named("a"), key)
		if got, err := c.Get(t.Context(), named("a")); err == nil {
			t.Errorf("%v after a server refused it", got)
		}
	}))
	t.Run("a failure is remembered for a short while", bubble(func(t *testing.T) {
		s := newSecrets()
		c := NewCache(s.read, maxAge, 0)
		for range 3 {
			if key, err := c.Get(t.Context(), named("a")); err == nil || key != nil || s.reads["a"] != 1 {
				t.Errorf("%v, %v after %d reads", key, err, s.reads["a"])
			}
		}
		s.keys["a"] = &wire.Key{}
		time.Sleep(failureAge)
		if key, err := c.Get(t.Context(), named("a")); err != nil || key != s.keys["a"] {
			t.Errorf("%v, %v", key, err)
		}
	}))
	t.Run("callers share a read, which outlives the first of them", bubble(func(t *testing.T) {
		s := newSecrets("a")
		s.delay = time.Second
		c := NewCache(s.read, maxAge, 0)
		ctx, cancel := context.WithTimeout(t.Context(), s.delay/2)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if key, err := c.Get(ctx, named("a")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v for a caller that gave up", key, err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if key, err := c.Get(t.Context(), named("a")); err != nil || key != s.keys["a"] {
				t.Errorf("%v, %v for a caller that waited", key, err)
			}
		})
		wg.Wait()
		if s.reads["a"] != 1 {
			t.Errorf("%d reads", s.reads["a"])
		}
	}))
	t.Run("a read that takes too long fails", bubble(func(t *testing.T) {
		s := newSecrets("a")
		s.delay = time.Hour
		if key, err := NewCache(s.read, maxAge, 0).Get(t.Context(), named("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", key, err)
		}
	}))
	t.Run("a key that was set is used, also after a failure and during one", bubble(func(t *testing.T) {
		s := newSecrets()
		s.delay = time.Second
		c := NewCache(s.read, maxAge, 0)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Get(t.Context(), named("a")) })
		synctest.Wait()
		key := &wire.Key{}
		c.Set(named("a"), key)
		wg.Wait()
		if got, err := c.Get(t.Context(), named("a")); err != nil || got != key {
			t.Errorf("%v, %v", got, err)
		}
	}))
	t.Run("a refused key is read again, unless another has taken its place", bubble(func(t *testing.T) {
		s := newSecrets("a")
		c := NewCache(s.read, maxAge, 0)
		old, _ := c.Get(t.Context(), named("a"))
		s.keys["a"] = &wire.Key{Name: "next"}
		c.Invalidate(named("a"), old)
		if got, err := c.Get(t.Context(), named("a")); err != nil || got != s.keys["a"] {
			t.Errorf("%v, %v", got, err)
		}
		c.Invalidate(named("a"), old)
		if _, err := c.Get(t.Context(), named("a")); err != nil || s.reads["a"] != 2 {
			t.Errorf("%v after %d reads", err, s.reads["a"])
		}
	}))
}
