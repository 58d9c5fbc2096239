package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// handshakeTimeout is how long a caller has to authenticate.
	handshakeTimeout = 5 * time.Second
	// maxStrangers bounds the connections of callers that have not authenticated.
	maxStrangers = 256
)

// handshakeListener accepts connections whose callers have authenticated. Those that have not are few and short-lived, and
// take nobody's place.
type handshakeListener struct {
	net.Listener
	config    *tls.Config
	strangers strangers
	// accepted has what Accept returns.
	accepted chan acceptResult
	closed   context.Context
	close    context.CancelFunc
}

type acceptResult struct {
	conn net.Conn
	err  error
}

func newHandshakeListener(listener net.Listener, config *tls.Config) *handshakeListener {
	l := &handshakeListener{Listener: listener, config: config, accepted: make(chan acceptResult)}
	l.closed, l.close = context.WithCancel(context.Background())
	go l.acceptAll()
	return l
}

// acceptAll accepts every connection, so that none waits for the handshake of another.
func (l *handshakeListener) acceptAll() {
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.strangers.add(conn)
			go l.handshake(conn)
			continue
		}
		l.deliver(acceptResult{err: err})
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

func (l *handshakeListener) handshake(conn net.Conn) {
	ctx, cancel := context.WithTimeout(l.closed, handshakeTimeout)
	defer cancel()
	secured := tls.Server(conn, l.config)
	if err := secured.HandshakeContext(ctx); err != nil {
		klog.V(4).InfoS("handshake failed", "remote", conn.RemoteAddr(), "reason", err.Error())
		closeRefused(conn)
		l.strangers.remove(conn)
		return
	}
	l.strangers.remove(conn)
	l.deliver(acceptResult{conn: secured})
}

// closeRefused closes a connection once the caller has had a moment to read why. One that is closed while it has unread data
// is reset, and the caller may lose the alert (RFC 9293 section 3.6).
func closeRefused(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
		_ = tcp.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.CopyN(io.Discard, tcp, 64<<10)
	}
	_ = conn.Close()
}

func (l *handshakeListener) deliver(result acceptResult) {
	select {
	case l.accepted <- result:
	case <-l.closed.Done():
		if result.conn != nil {
			_ = result.conn.Close()
		}
	}
}

// Accept implements net.Listener.
func (l *handshakeListener) Accept() (net.Conn, error) {
	select {
	case result := <-l.accepted:
		return result.conn, result.err
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It also ends the handshakes under way.
func (l *handshakeListener) Close() error {
	l.close()
	return l.Listener.Close()
}

// strangers are the connections of callers that have not authenticated, oldest first. A new one is never refused: if there are
// too many, the oldest of the address that has the most goes. So whoever opens many pays for them, and not the few of others.
type strangers struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (s *strangers) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= maxStrangers {
		i := s.oldestOfMost()
		_ = s.conns[i].Close()
		s.conns = slices.Delete(s.conns, i, i+1)
	}
	s.conns = append(s.conns, conn)
}

// oldestOfMost is the index of the oldest connection of the address that has the most.
func (s *strangers) oldestOfMost() int {
	counts := map[netip.Addr]int{}
	var most netip.Addr
	for _, conn := range s.conns {
		address := addressOf(conn)
		if counts[address]++; counts[address] > counts[most] {
			most = address
		}
	}
	return slices.IndexFunc(s.conns, func(conn net.Conn) bool { return addressOf(conn) == most })
}

func (s *strangers) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(other net.Conn) bool { return other == conn })
}

func addressOf(conn net.Conn) netip.Addr {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
