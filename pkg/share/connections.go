package share

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Connections are a bounded number of connections, oldest first. A new one is never refused: if there are too many, the oldest of the address
// that has the most goes. So whoever opens many pays for them, and not the few of others. It is safe for concurrent use.
type Connections struct {
	most int

	mu    sync.Mutex
	conns []net.Conn
}

// NewConnections has room for so many connections.
func NewConnections(most int) *Connections { return &Connections{most: most} }

// Add adds a connection, and closes another one if there are too many.
func (c *Connections) Add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) >= c.most {
		i := c.oldestOfMost()
		_ = c.conns[i].Close()
		c.conns = slices.Delete(c.conns, i, i+1)
	}
	c.conns = append(c.conns, conn)
}

// oldestOfMost is the index of the oldest connection of the address that has the most.
func (c *Connections) oldestOfMost() int {
	counts := map[netip.Addr]int{}
	var most netip.Addr
	for _, conn := range c.conns {
		address := addressOf(conn)
		if counts[address]++; counts[address] > counts[most] {
			most = address
		}
	}
	return slices.IndexFunc(c.conns, func(conn net.Conn) bool { return addressOf(conn) == most })
}

// Remove forgets a connection; it need not be there.
func (c *Connections) Remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = slices.DeleteFunc(c.conns, func(other net.Conn) bool { return other == conn })
}

func addressOf(conn net.Conn) netip.Addr {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// NewListener returns a listener that keeps at most so many connections of another one open, as Connections does.
func NewListener(of net.Listener, most int) net.Listener { return &listener{of, NewConnections(most)} }

type listener struct {
	net.Listener
	open *Connections
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(conn)
	return &countedConn{conn, l.open}, nil
}

// countedConn makes room when it is closed.
type countedConn struct {
	net.Conn
	among *Connections
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.among.Remove(c.Conn)
	return c.Conn.Close()
}
