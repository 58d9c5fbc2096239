package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/share"
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
	config *tls.Config
	// strangers are those that have not authenticated.
	strangers *share.Connections
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
	l := &handshakeListener{Listener: listener, config: config, strangers: share.NewConnections(maxStrangers), accepted: make(chan acceptResult)}
	l.closed, l.close = context.WithCancel(context.Background())
	go l.acceptAll()
	return l
}

// acceptAll accepts every connection, so that none waits for the handshake of another.
func (l *handshakeListener) acceptAll() {
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.strangers.Add(conn)
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
		l.strangers.Remove(conn)
		return
	}
	l.strangers.Remove(conn)
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
