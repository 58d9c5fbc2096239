package observe

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// silentServer returns a server that takes questions over UDP and hands them to answer, nil to be silent, and whose TCP port is closed
// or open. A closed one is taken all the same: nobody else can listen there.
func silentServer(t *testing.T, open bool, answer func(net.PacketConn, net.Addr, []byte)) netip.AddrPort {
	t.Helper()
	addr := takePort(t, open)
	udp, err := net.ListenPacket("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		for buffer := make([]byte, 512); ; {
			n, from, err := udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer != nil {
				answer(udp, from, buffer[:n])
			}
		}
	}()
	return addr
}

// takePort binds a TCP port on loopback, and listens there if it is to be open.
func takePort(t *testing.T, open bool) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		t.Fatal(err)
	}
	if open {
		if err := syscall.Listen(fd, 1); err != nil {
			t.Fatal(err)
		}
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(loopback, uint16(bound.(*syscall.SockaddrInet4).Port))
}

// askAgain asks a server that did not answer the last time.
func askAgain(t *testing.T, addr netip.AddrPort, timeout time.Duration) Observation {
	t.Helper()
	o := New(Options{Timeout: timeout})
	s, done := o.useServer(Peer{Addr: addr})
	defer done()
	s.unanswered = Observation{At: time.Now().Add(-time.Minute), Rcode: NoReply, Err: errors.New("no answer in time")}
	return o.Serial(t.Context(), Peer{Addr: addr}, "example.test.", nil)
}

// A server that was silent and refuses TCP is given up soon: nobody listens there.
func TestRefusedServerIsGivenUp(t *testing.T) {
	t.Parallel()
	seen := askAgain(t, silentServer(t, false, nil), time.Hour)
	if seen.Rcode != NoReply || !errors.Is(seen.Err, syscall.ECONNREFUSED) {
		t.Errorf("%d %v, want that the connection is refused", seen.Rcode, seen.Err)
	}
}

// One that accepts connections may be slow, or stopped: it is waited for.
func TestServerThatListensIsWaitedFor(t *testing.T) {
	t.Parallel()
	if seen := askAgain(t, silentServer(t, true, nil), 4*refusalGrace); errors.Is(seen.Err, syscall.ECONNREFUSED) {
		t.Errorf("%v, although it listens", seen.Err)
	}
}

// One that answers over UDP alone is there.
func TestServerWithoutTCPIsAsked(t *testing.T) {
	t.Parallel()
	addr := silentServer(t, false, func(conn net.PacketConn, to net.Addr, raw []byte) {
		question := new(dns.Msg)
		if question.Unpack(raw) != nil {
			return
		}
		reply, _ := new(dns.Msg).SetRcode(question, dns.RcodeRefused).Pack()
		_, _ = conn.WriteTo(reply, to)
	})
	if seen := askAgain(t, addr, time.Hour); seen.Rcode != dns.RcodeRefused {
		t.Errorf("%d %v, want the server's answer", seen.Rcode, seen.Err)
	}
}
