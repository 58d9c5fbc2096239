package rfc2136

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// keepIdle is how long an unused connection is kept. named closes it after 30 seconds.
const keepIdle = 20 * time.Second

// pool keeps connections, apart by server and key.
type pool struct {
	size int

	mu    sync.Mutex
	peers map[peer]*line
}

type peer struct {
	server netip.AddrPort
	key    wire.Key
}

// line holds the connections to one peer. pool.mu guards it.
type line struct {
	users int
	slots chan struct{}
	idle  []*idleConn
}

type idleConn struct {
	*wire.Conn
	timer *time.Timer
}

func newPool(size int) *pool { return &pool{size: size, peers: map[peer]*line{}} }

// get waits for its turn and gives a connection, to be handed back by calling release.
func (p *pool) get(ctx context.Context, server netip.AddrPort, key *wire.Key) (conn *wire.Conn, release func(), err error) {
	at := peer{server: server}
	if key != nil {
		at.key = *key
	}
	l := p.enter(at)
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		p.leave(at, l)
		return nil, nil, &wire.Error{Op: "update", Server: server.String(), Err: context.Cause(ctx)}
	}
	if conn = p.take(l); conn == nil {
		if conn, err = wire.Dial(ctx, server, key); err != nil {
			<-l.slots
			p.leave(at, l)
			return nil, nil, err
		}
	}
	return conn, func() {
		p.keep(at, l, conn)
		<-l.slots
		p.leave(at, l)
	}, nil
}

func (p *pool) enter(at peer) *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.peers[at]
	if l == nil {
		l = &line{slots: make(chan struct{}, p.size)}
		p.peers[at] = l
	}
	l.users++
	return l
}

func (p *pool) leave(at peer, l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
	p.tidy(at, l)
}

// tidy forgets a peer that nobody uses. pool.mu is held.
func (p *pool) tidy(at peer, l *line) {
	if l.users == 0 && len(l.idle) == 0 && p.peers[at] == l {
		delete(p.peers, at)
	}
}

func (p *pool) take(l *line) *wire.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(l.idle) == 0 {
		return nil
	}
	c := l.idle[len(l.idle)-1]
	l.idle = l.idle[:len(l.idle)-1]
	c.timer.Stop()
	return c.Conn
}

func (p *pool) keep(at peer, l *line, conn *wire.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &idleConn{Conn: conn}
	c.timer = time.AfterFunc(keepIdle, func() { p.expire(at, l, c) })
	l.idle = append(l.idle, c)
}

func (p *pool) expire(at peer, l *line, c *idleConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(l.idle, c); i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
		_ = c.Close()
		p.tidy(at, l)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, l := range p.peers {
		for _, c := range l.idle {
			c.timer.Stop()
			_ = c.Close()
		}
		l.idle = nil
		p.tidy(at, l)
	}
}
