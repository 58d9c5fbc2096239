package wire

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// exchangeTimeout bounds an exchange on a Conn when its context has no deadline of its own.
const exchangeTimeout = 10 * time.Second

// freshFor is how long an idle connection is trusted. named closes idle ones after 30 seconds.
const freshFor = 15 * time.Second

// Conn is one kept TCP connection to a server that signs every message with one key. It is made anew before a message
// is sent when it was idle for long or the server has closed it; a message that was sent is never sent again.
// Its methods may be called at the same time; exchanges follow one after the other.
type Conn struct {
	server netip.AddrPort
	key    *Key

	// turn is held by the exchange under way. A channel and no mutex, so that waiting for it obeys contexts.
	turn chan struct{}
	nc   net.Conn // nil when there is none
	used time.Time

	closed context.Context
	close  context.CancelFunc
}

// ErrClosed means that the Conn was closed by its owner.
var ErrClosed = errors.New("the connection was closed")

// Dial connects to a server. With a nil key messages are not signed.
func Dial(ctx context.Context, server netip.AddrPort, key *Key) (*Conn, error) {
	c := &Conn{server: server, turn: make(chan struct{}, 1)}
	c.closed, c.close = context.WithCancel(context.Background())
	if key != nil {
		k := *key
		c.key = &k
	}
	if err := c.dial(ctx); err != nil {
		return nil, fill(err, "connect", server, "")
	}
	return c, nil
}

// Exchange sends a copy of m with an ID and a signature of its own and waits for the reply, which it returns whatever
// its rcode. The error is an *Error; its field Sent tells whether the server may have acted on the message.
func (c *Conn) Exchange(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, exchangeTimeout)
		defer cancel()
	}
	reply, err := c.exchange(ctx, m)
	if err != nil {
		return nil, fill(err, opName(m), c.server, m.Question[0].Name)
	}
	return reply, nil
}

// Close ends the connection. An exchange under way fails.
func (c *Conn) Close() error {
	c.close()
	c.turn <- struct{}{} // The exchange under way ends at once.
	defer func() { <-c.turn }()
	c.hangUp()
	return nil
}

func (c *Conn) exchange(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	req, err := newRequest(m, c.key)
	if err != nil {
		return nil, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.closed, func() { cancel(ErrClosed) })
	defer stop()
	reply, err := c.onWire(ctx, req)
	if err != nil && reply == nil {
		c.hangUp()
	}
	c.used = time.Now()
	return reply, err
}

// onWire returns a nil message when the connection is of no more use.
func (c *Conn) onWire(ctx context.Context, req *request) (*dns.Msg, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	defer bind(ctx, c.nc)()
	if err := writeStream(c.nc, req.raw); err != nil {
		return nil, &Error{Sent: true, Err: cause(ctx, err)}
	}
	raw, err := readStream(c.nc)
	if err != nil {
		return nil, &Error{Sent: true, Err: cause(ctx, err)}
	}
	reply, err := req.verdict(raw)
	if errors.Is(err, ErrReply) {
		return nil, &Error{Sent: true, Err: err}
	}
	return reply, err
}

// ready makes sure, as far as one can, that the connection still stands.
func (c *Conn) ready(ctx context.Context) error {
	if c.closed.Err() != nil {
		return ErrClosed
	}
	if c.nc != nil && time.Since(c.used) < freshFor && alive(c.nc) {
		return nil
	}
	c.hangUp()
	return c.dial(ctx)
}

func (c *Conn) dial(ctx context.Context) error {
	nc, err := dialTCP(ctx, c.server)
	if err != nil {
		return err
	}
	c.nc, c.used = nc, time.Now()
	return nil
}

func (c *Conn) hangUp() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// alive looks, without waiting, whether the peer has closed the connection or sent something unasked.
func alive(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	_ = nc.SetDeadline(time.Time{})
	quiet := false
	err = rc.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}

func opName(m *dns.Msg) string {
	switch m.Opcode {
	case dns.OpcodeUpdate:
		return "update"
	case dns.OpcodeNotify:
		return "notify"
	}
	return "query"
}
