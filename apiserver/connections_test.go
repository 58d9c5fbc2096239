package apiserver

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server"
)

// Whoever opens connections without end loses the oldest of them.
func TestConnectionsAreBounded(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := NewOptions()
	o.SecureServing.Listener = listener
	generic := server.NewConfig(codecs)
	if err := o.applyServing(generic); err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := generic.SecureServing.Listener.Accept(); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	oldest := dial()
	for range maxConnections {
		dial()
	}
	_ = oldest.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := oldest.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest of too many connections is open: %v", err)
	}
}
