package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// connectTimeout is how long a TCP connection may take.
const connectTimeout = 2 * time.Second

type accountsKey struct{}

// WithAccount has all connections of a context belong to an account.
func WithAccount(ctx context.Context, a *Account) context.Context {
	return WithAccounts(ctx, func(string) *Account { return a })
}

// WithAccounts has each connection of a context belong to the account of the address, "IP:port", that it leads to.
func WithAccounts(ctx context.Context, of func(address string) *Account) context.Context {
	return context.WithValue(ctx, accountsKey{}, of)
}

// Dial connects for the account of the context; without one there is no limit.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var a *Account
	if of, ok := ctx.Value(accountsKey{}).(func(string) *Account); ok {
		a = of(address)
	}
	return a.Dial(ctx, network, address)
}

// Dial connects to an address and port, or to a host name and port, over "udp" or "tcp". It waits while the account has as many
// connections as it may. Whatever a host name resolves to, only permitted addresses are connected to.
func (a *Account) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	address, err := absolute(address)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{}
	if network == "tcp" {
		dialer = newDialer(connectTimeout)
	}
	if a == nil {
		return dialer.DialContext(ctx, network, address)
	}
	leave := func() {}
	if a.open != nil {
		if leave, err = a.enter(ctx, a.open, "connections", a.connections, a.most); err != nil {
			return nil, err
		}
	}
	control := dialer.Control
	dialer.Control = func(network, address string, raw syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && !a.permits(at.Addr()) {
			err = forbiddenError{at.Addr(), a.gate.Forbidden()}
		}
		if err == nil && control != nil {
			err = control(network, address, raw)
		}
		return err
	}
	open, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		leave()
		return nil, err
	}
	return &conn{Conn: open, account: a, leave: leave}, nil
}

// IsCrowded reports whether the account of a connection that Dial made, or its namespace, has more than half of the connections that it
// may have: an idle one is better closed then.
func IsCrowded(open net.Conn) bool {
	c, ok := open.(*conn)
	if !ok || c.account.open == nil {
		return false
	}
	return c.account.open.isCrowded(c.account.object()) || c.account.open.isCrowded(c.account.namespace)
}

// absolute makes the host name of an address absolute: what tenants name is not completed with our search path.
func absolute(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(AbsoluteName(host), port), nil
}

// AbsoluteName ends a host name with a dot, without which a resolver tries the names of the search path. An address stays as it is.
func AbsoluteName(host string) string {
	if _, err := netip.ParseAddr(host); err == nil || host == "" || strings.HasSuffix(host, ".") {
		return host
	}
	return host + "."
}

// conn is a connection that is counted.
type conn struct {
	net.Conn
	account *Account
	leave   func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if inner, ok := c.Conn.(syscall.Conn); ok {
		return inner.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
