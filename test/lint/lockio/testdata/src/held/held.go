// Package held locks, and waits, in every order.
package held

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

type server struct {
	mu     sync.Mutex
	shared sync.RWMutex
	client *clientv3.Client
	conn   net.Conn
	seen   map[string]bool
}

func (s *server) afterwards(ctx context.Context) error {
	s.mu.Lock()
	s.seen["a"] = true
	s.mu.Unlock()
	return s.client.Get(ctx, "a")
}

func (s *server) meanwhile(ctx context.Context) error {
	s.mu.Lock()
	err := s.client.Get(ctx, "a") // want `\(go.etcd.io/etcd/client/v3.KV\).Get may wait for the network while s.mu is held`
	s.mu.Unlock()
	return err
}

func (s *server) reading(host string) ([]string, error) {
	s.shared.RLock()
	defer s.shared.RUnlock()
	return net.LookupHost(host) // want `net.LookupHost may wait for the network while s.shared is held`
}

func (s *server) onOnePath(ctx context.Context, known bool) error {
	s.mu.Lock()
	if known {
		s.mu.Unlock()
		return s.client.Get(ctx, "a")
	}
	_, err := http.Get("http://192.0.2.1/") // want `net/http.Get may wait for the network while s.mu is held`
	s.mu.Unlock()
	return err
}

func (s *server) unlockedOnEveryPath(ctx context.Context, known bool) error {
	s.mu.Lock()
	if known {
		s.mu.Unlock()
	} else {
		s.seen["a"] = true
		s.mu.Unlock()
	}
	return s.client.Get(ctx, "a")
}

// On one path it is not held: nothing is reported that may be right.
func (s *server) perhaps(ctx context.Context, known bool) error {
	if known {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return s.client.Get(ctx, "a")
}

func (s *server) inLoop(ctx context.Context, keys []string) {
	for _, key := range keys {
		s.mu.Lock()
		if s.seen[key] {
			s.mu.Unlock()
			continue
		}
		_ = s.client.Get(ctx, key) // want `while s.mu is held`
		s.mu.Unlock()
		_ = s.client.Get(ctx, key)
	}
}

func (s *server) inSwitch(ctx context.Context, n int) {
	s.mu.Lock()
	switch n {
	case 0:
		_, _ = s.conn.Write(nil) // want `\(net.Conn\).Write may wait for the network while s.mu is held`
	case 1:
		s.mu.Unlock()
		_ = s.client.Get(ctx, "a")
		return
	default:
		return
	}
	_, _ = s.conn.Read(nil) // want `\(net.Conn\).Read`
	s.mu.Unlock()
}

func (s *server) inSelect(ctx context.Context, done chan bool) {
	select {
	case <-done:
		s.mu.Lock()
		_ = s.client.Get(ctx, "a") // want `while s.mu is held`
		s.mu.Unlock()
	case <-ctx.Done():
	}
	_ = s.client.Get(ctx, "a")
}

func (s *server) elsewhere(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	go func() { _ = s.client.Get(ctx, "a") }()
	go s.get(ctx)
	later := func() { _ = s.client.Get(ctx, "a") }
	go later()
}

func (s *server) atOnce(ctx context.Context, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	func() {
		_ = s.client.Get(ctx, "a") // want `while s.mu is held`
	}()
	slices.ContainsFunc(keys, func(key string) bool {
		return s.client.Get(ctx, key) == nil // want `while s.mu is held`
	})
	defer s.get(ctx) // want `get, which calls \(go.etcd.io/etcd/client/v3.KV\).Get, may wait for the network while s.mu is held`
}

func (s *server) inLiteral(ctx context.Context) func() {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.client.Get(ctx, "a") // want `while s.mu is held`
	}
}

func (s *server) get(ctx context.Context) { _ = s.client.Get(ctx, "a") }

func (s *server) twice(ctx context.Context) { s.get(ctx) }

func (s *server) farAway(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twice(ctx) // want `twice, which calls get, may wait for the network while s.mu is held`
}

func (s *server) withoutWaiting(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = clientv3.WithRequireLeader(ctx)
	_ = s.conn.Close()
	_, _ = net.ParseMAC("")
}

func (s *server) excused(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.client.Get(ctx, "a") //lockio:allow nobody else has this mutex
}

func (s *server) withoutReason(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// want +1 `while s.mu is held` `this exception has no reason`
	_ = s.client.Get(ctx, "a") //lockio:allow
}

func (s *server) withoutNeed(ctx context.Context) {
	_ = s.client.Get(ctx, "a") /* want `this exception excuses nothing` */ //lockio:allow it was needed once
}

type embedded struct {
	sync.Mutex
	client *clientv3.Client
}

func (e *embedded) get(ctx context.Context) {
	e.Lock()
	defer e.Unlock()
	_ = e.client.Get(ctx, "a") // want `while e is held`
}
