package wire

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

// exchangeTimeout bounds an exchange on a Conn when its context has no deadline of its own.
const exchangeTimeout = 10 * time.Second

// freshFor is how long an idle connection is reused. named closes idle ones after 30 seconds.
const freshFor = 15 * time.Second

// Conn is a persistent TCP connection to a server that signs every message with one key. It reconnects before it sends a
// message if it was idle for long or the server has closed it; a message that was sent is never sent again.
// It is safe for concurrent use; exchanges run one after the other.
type Conn struct {
	server netip.AddrPort
	key    *Key

	// turn is held by the exchange under way. It is a channel instead of a mutex so that waiting obeys contexts.
	turn chan struct{}
	nc   net.Conn // nil when there is none
	used time.Time

	closed context.Context
	close  context.CancelFunc
}

// ErrClosed means that the Conn was closed by its owner.
var ErrClosed = errors.New("the connection was closed")

// Dial connects to a server. With a nil key, messages are not signed.
func Dial(ctx context.Context, server netip.AddrPort, key *Key) (*Conn, error) {
	c := &Conn{server: server, turn: make(chan struct{}, 1)}
	c.closed, c.close = context.WithCancel(context.Background())
	if key != nil {
		k := *key
		c.key = &k
	}
	if err := c.connect(ctx); err != nil {
		return nil, wrapError(err, "connect", server, "")
	}
	return c, nil
}

// Exchange sends a copy of m with its own ID and signature and returns the reply, whatever its rcode. The error is an
// *Error; its field Sent is true if the server may have acted on the message.
func (c *Conn) Exchange(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	p, err := c.Prepare(m)
	if err != nil {
		return nil, err
	}
	return c.ExchangePrepared(ctx, p)
}

// Prepared is a message that has its ID and signature and is ready to be sent, once. The signature is valid for some minutes.
type Prepared struct {
	*request
	operation, zone string
}

// Prepare makes a copy of m ready to be sent. It does not wait for the exchange under way. The error is an *Error.
func (c *Conn) Prepare(m *dns.Msg) (*Prepared, error) {
	p := &Prepared{operation: operationName(m), zone: m.Question[0].Name}
	req, err := newRequest(m, c.key)
	if err != nil {
		return nil, wrapError(err, p.operation, c.server, p.zone)
	}
	p.request = req
	return p, nil
}

// ExchangePrepared is Exchange of what Prepare of the same Conn returned.
func (c *Conn) ExchangePrepared(ctx context.Context, p *Prepared) (*dns.Msg, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, exchangeTimeout)
		defer cancel()
	}
	reply, err := c.exchange(ctx, p.request)
	if err != nil {
		return nil, wrapError(err, p.operation, c.server, p.zone)
	}
	return reply, nil
}

// IsCrowded reports whether the connection is better closed than kept (outbound.IsCrowded). No exchange may be under way.
func (c *Conn) IsCrowded() bool { return c.nc != nil && outbound.IsCrowded(c.nc) }

// Close ends the connection. An exchange under way fails.
func (c *Conn) Close() error {
	c.close()
	c.turn <- struct{}{} // The exchange under way ends at once.
	defer func() { <-c.turn }()
	c.disconnect()
	return nil
}

func (c *Conn) exchange(ctx context.Context, req *request) (*dns.Msg, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.closed, func() { cancel(ErrClosed) }) //nolint:contextcheck // of the connection
	defer stop()
	reply, err := c.sendAndReceive(ctx, req)
	if err != nil && reply == nil {
		c.disconnect()
	}
	c.used = time.Now()
	return reply, err
}

// sendAndReceive yields a nil message if the connection cannot be used any more.
func (c *Conn) sendAndReceive(ctx context.Context, req *request) (*dns.Msg, error) {
	if err := c.ensureConnected(ctx); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	defer bindToContext(ctx, c.nc)()
	if err := writeMessage(c.nc, req.raw); err != nil {
		return nil, &Error{Sent: true, Err: contextCause(ctx, err)}
	}
	raw, err := readMessage(c.nc, maxReply)
	if err != nil {
		return nil, &Error{Sent: true, Err: contextCause(ctx, err)}
	}
	reply, err := req.parseReply(raw)
	if errors.Is(err, ErrReply) {
		return nil, &Error{Sent: true, Err: err}
	}
	return reply, err
}

// ensureConnected reconnects unless the connection is known to be usable.
func (c *Conn) ensureConnected(ctx context.Context) error {
	if c.closed.Err() != nil {
		return ErrClosed
	}
	if c.nc != nil && time.Since(c.used) < freshFor && isAlive(c.nc) {
		return nil
	}
	c.disconnect()
	return c.connect(ctx)
}

func (c *Conn) connect(ctx context.Context) error {
	nc, err := dial(ctx, "tcp", c.server)
	if err != nil {
		return err
	}
	c.nc, c.used = nc, time.Now()
	return nil
}

func (c *Conn) disconnect() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

func operationName(m *dns.Msg) string {
	switch m.Opcode {
	case dns.OpcodeUpdate:
		return "update"
	case dns.OpcodeNotify:
		return "notify"
	}
	return "query"
}
