package named

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

var localhost = netip.MustParseAddr("127.0.0.1")

// The ports of tests are below those that the kernel gives to clients and those of Services of type NodePort.
const (
	firstPort = 20000
	portCount = 10000
)

// lastPort counts the ports that this process has tried. It begins anywhere, and a port comes again after all others only: a late packet
// of a test that has ended meets nobody.
var lastPort = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32N(portCount))
	return n
}()

// reserved holds the sockets that keep a port ours until its server starts.
var (
	reservedMu sync.Mutex
	reserved   = map[netip.AddrPort]func(){}
)

// Reserve finds a loopback port that nobody uses, over UDP and TCP. It listens there until a server is started on it, and no other test
// gets the port before this one has ended. named shares a busy port without complaint, so that a test could talk to a stranger.
func Reserve(t testing.TB) netip.AddrPort {
	t.Helper()
	p, err := takePort(localhost)
	if err != nil {
		t.Fatal(err)
	}
	reservedMu.Lock()
	reserved[p.addr] = p.unbind
	reservedMu.Unlock()
	t.Cleanup(func() {
		reservedMu.Lock()
		delete(reserved, p.addr)
		reservedMu.Unlock()
		p.unbind()
		p.unclaim()
	})
	return p.addr
}

// FreeAddress returns a port of an address of this machine that nobody uses, over UDP and TCP. No other process that asks here gets it
// while this one runs.
func FreeAddress(host netip.Addr) (netip.AddrPort, error) {
	p, err := takePort(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	p.unbind()
	return p.addr, nil
}

// FreePorts returns loopback ports as FreeAddress does, for programs that are no tests.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		addr, err := FreeAddress(localhost)
		if err != nil {
			return nil, err
		}
		ports = append(ports, int(addr.Port()))
	}
	return ports, nil
}

// takenPort is ours among tests until unclaim, and bound by us until unbind.
type takenPort struct {
	addr            netip.AddrPort
	unbind, unclaim func()
}

func takePort(host netip.Addr) (takenPort, error) {
	for range portCount {
		addr := netip.AddrPortFrom(host, uint16(firstPort+lastPort.Add(1)%portCount))
		unclaim, err := claim(addr.Port())
		if err != nil {
			continue
		}
		unbind, err := bind(addr)
		if err != nil {
			unclaim()
			continue
		}
		return takenPort{addr, unbind, unclaim}, nil
	}
	return takenPort{}, fmt.Errorf("no free port on %s from %d to %d", host, firstPort, firstPort+portCount-1)
}

// claim makes a port ours among all processes that run tests on this machine, by a Unix socket of its name. The kernel takes it back when
// the process ends.
func claim(port uint16) (unclaim func(), err error) {
	name := &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@lockstep-test-port-%d", port)}
	socket, err := net.ListenUnixgram(name.Net, name)
	if err != nil {
		return nil, err
	}
	return func() { _ = socket.Close() }, nil
}

// bind listens over TCP and UDP until unbind is called.
func bind(addr netip.AddrPort) (unbind func(), err error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return func() {
		syscall.ForkLock.RLock() // A child that does not run its program yet has our sockets, too.
		defer syscall.ForkLock.RUnlock()
		_ = tcp.Close()
		_ = udp.Close()
	}, nil
}

// Release stops listening on reserved ports, for a server that starts there now, and checks that nobody does on the others.
func Release(t testing.TB, addrs ...netip.AddrPort) {
	t.Helper()
	for _, addr := range addrs {
		reservedMu.Lock()
		unbind := reserved[addr]
		delete(reserved, addr)
		reservedMu.Unlock()
		if unbind == nil {
			var err error
			if unbind, err = bind(addr); err != nil {
				t.Fatalf("port in use: %v", err)
			}
		}
		unbind()
	}
}
