package outbound

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whoever waits on a connection learns soon that the other side's kernel acknowledges nothing any more, whether something was sent
// or not. Without the dialer's options that takes a quarter of an hour, or for ever.
func TestSilentPeerEndsConnection(t *testing.T) {
	for name, request := range map[string]string{"idle": "", "data under way": "a request"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, peer := connect(t)
			dropIncoming(t, peer)
			if _, err := conn.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := conn.Read(make([]byte, 1))
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil {
					t.Fatal("a peer that drops everything has answered")
				}
			case <-time.After(10 * silence):
				t.Fatalf("the connection is still there %s after its peer fell silent", 10*silence)
			}
		})
	}
}

// A peer that answers late is no dead one.
func TestSlowPeerKeepsConnection(t *testing.T) {
	t.Parallel()
	conn, peer := connect(t)
	go func() {
		time.Sleep(silence + 2*probeInterval)
		_, _ = peer.Write([]byte("x"))
	}()
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the answer of a slow peer: %v", err)
	}
}

// connect returns both ends of a connection that the dialer made.
func connect(t *testing.T) (conn, peer net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err = newDialer(time.Minute).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if peer, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	return conn, peer
}

// dropIncoming has the kernel drop all that comes for a connection.
func dropIncoming(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	dropAll := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	program := unix.SockFprog{Len: 1, Filter: &dropAll[0]}
	if failure := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	}); failure != nil || err != nil {
		t.Fatal(failure, err)
	}
}
