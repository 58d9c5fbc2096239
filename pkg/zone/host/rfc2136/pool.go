package rfc2136

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// keepIdle is how long an unused connection is kept. named closes it after 30 seconds.
const keepIdle = 20 * time.Second

// connPool keeps connections by server and key.
type connPool struct {
	size int

	mu    sync.Mutex
	peers map[poolKey]*peerConns
}

type poolKey struct {
	server netip.AddrPort
	key    wire.Key
}

// peerConns holds the connections to one peer. connPool.mu guards it.
type peerConns struct {
	users int
	slots chan struct{}
	idle  []*idleConn
}

type idleConn struct {
	*wire.Conn
	timer *time.Timer
}

func newConnPool(size int) *connPool { return &connPool{size: size, peers: map[poolKey]*peerConns{}} }

// acquire waits for a free slot and returns a connection, to be handed back with release.
func (p *connPool) acquire(ctx context.Context, server netip.AddrPort, key *wire.Key) (conn *wire.Conn, release func(), err error) {
	at := poolKey{server: server}
	if key != nil {
		at.key = *key
	}
	l := p.joinPeer(at)
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		p.leavePeer(at, l)
		return nil, nil, &wire.Error{Op: "update", Server: server.String(), Err: context.Cause(ctx)}
	}
	if conn = p.takeIdle(l); conn == nil {
		if conn, err = wire.Dial(ctx, server, key); err != nil {
			<-l.slots
			p.leavePeer(at, l)
			return nil, nil, err
		}
	}
	return conn, func() {
		if conn.IsCrowded() {
			_ = conn.Close()
		} else {
			p.putIdle(at, l, conn)
		}
		<-l.slots
		p.leavePeer(at, l)
	}, nil
}

func (p *connPool) joinPeer(at poolKey) *peerConns {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.peers[at]
	if l == nil {
		l = &peerConns{slots: make(chan struct{}, p.size)}
		p.peers[at] = l
	}
	l.users++
	return l
}

func (p *connPool) leavePeer(at poolKey, l *peerConns) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
	p.removeUnused(at, l)
}

// removeUnused removes a peer that nobody uses. connPool.mu is held.
func (p *connPool) removeUnused(at poolKey, l *peerConns) {
	if l.users == 0 && len(l.idle) == 0 && p.peers[at] == l {
		delete(p.peers, at)
	}
}

func (p *connPool) takeIdle(l *peerConns) *wire.Conn {
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

func (p *connPool) putIdle(at poolKey, l *peerConns, conn *wire.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &idleConn{Conn: conn}
	c.timer = time.AfterFunc(keepIdle, func() { p.expireIdle(at, l, c) })
	l.idle = append(l.idle, c)
}

func (p *connPool) expireIdle(at poolKey, l *peerConns, c *idleConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(l.idle, c); i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
		_ = c.Close() //lockio:allow no exchange is under way on an idle connection
		p.removeUnused(at, l)
	}
}

func (p *connPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, l := range p.peers {
		for _, c := range l.idle {
			c.timer.Stop()
			_ = c.Close() //lockio:allow no exchange is under way on an idle connection
		}
		l.idle = nil
		p.removeUnused(at, l)
	}
}
