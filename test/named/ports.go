package named

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
)

var localhost = netip.MustParseAddr("127.0.0.1")

// reserved holds the sockets that keep a port ours until its server starts.
var (
	reservedMu sync.Mutex
	reserved   = map[netip.AddrPort]func(){}
)

// Reserve finds a loopback port that nobody uses, over UDP and TCP, and keeps it until a server is started on it. named
// shares a busy port without complaint, so that a test could talk to a stranger.
func Reserve(t testing.TB) netip.AddrPort {
	t.Helper()
	addr, free, err := bindFreePort(localhost)
	if err != nil {
		t.Fatal(err)
	}
	reservedMu.Lock()
	reserved[addr] = free
	reservedMu.Unlock()
	t.Cleanup(free)
	return addr
}

// FreeAddress returns a port of an address of this machine that nobody uses at the moment, over UDP and TCP, and that it has returned
// to nobody else.
func FreeAddress(host netip.Addr) (netip.AddrPort, error) {
	addr, free, err := bindFreePort(host)
	if err == nil {
		free()
	}
	return addr, err
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

// given are the ports that have been found free: who has one may not have bound it yet.
var given sync.Map

// bindFreePort listens on a port that nobody uses until free is called.
func bindFreePort(host netip.Addr) (addr netip.AddrPort, free func(), err error) {
	for range 200 {
		// Below the ports that the kernel gives to clients.
		addr = netip.AddrPortFrom(host, uint16(20000+rand.IntN(12000)))
		if _, taken := given.LoadOrStore(addr.Port(), true); taken {
			continue
		}
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			continue
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		if err != nil {
			_ = tcp.Close()
			continue
		}
		return addr, sync.OnceFunc(func() {
			_ = tcp.Close()
			_ = udp.Close()
		}), nil
	}
	return netip.AddrPort{}, nil, fmt.Errorf("no free port on %s between 20000 and 32000", host)
}

// release frees reserved ports, and checks that others are free.
func release(t testing.TB, addrs ...netip.AddrPort) {
	t.Helper()
	for _, addr := range addrs {
		reservedMu.Lock()
		free := reserved[addr]
		delete(reserved, addr)
		reservedMu.Unlock()
		if free != nil {
			free()
			continue
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		if err != nil {
			t.Fatalf("port in use: %v", err)
		}
		_ = udp.Close()
	}
}
