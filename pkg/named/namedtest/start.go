// Package namedtest starts a real named on loopback with the configuration that pkg/named renders, laid out in a
// temporary directory as it is in a pod, so that tests of the rndc client and the sidecar exercise what runs in
// production.
package namedtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Server is a running named.
type Server struct {
	Layout      named.Layout
	Control     named.ControlKey
	UpdateKey   *wire.Key
	TransferKey *wire.Key

	binary string
	log    lockedBuffer
	// stop ends the running process and waits for its end.
	stop func()
}

// DNS is where the server answers questions.
func (s *Server) DNS() netip.AddrPort { return loopback(s.Layout.Port) }

// ControlAddr is the address of the control channel.
func (s *Server) ControlAddr() string { return loopback(s.Layout.ControlPort).String() }

// StatisticsURL is the base address of the statistics channel.
func (s *Server) StatisticsURL() string {
	return "http://" + loopback(s.Layout.StatisticsPort).String()
}

// NoticeAddr is where named expects the sidecar to listen for NOTIFY. Nobody listens there unless a test does.
func (s *Server) NoticeAddr() netip.AddrPort { return loopback(s.Layout.NoticePort) }

// Log is what named has written to its log so far.
func (s *Server) Log() string { return s.log.String() }

func loopback(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)) //nolint:gosec // a port
}

// Start runs named in the given role until the test ends. Keys can be shared with another server of the test; a nil
// one is made. adjust may change the configuration before it is rendered. The test is skipped where BIND is missing.
func Start(t testing.TB, role v1beta1.ServerRole, keys [2]*wire.Key, adjust func(*named.Config)) *Server {
	t.Helper()
	binary, err := exec.LookPath("named")
	if err != nil {
		t.Skip("named is not installed")
	}
	s := &Server{UpdateKey: keys[0], TransferKey: keys[1]}
	s.Layout = layout(t)
	s.writeKeys(t, role)
	config := named.Config{Layout: s.Layout, Role: role}
	config.Options.ListenOn = []string{"127.0.0.1"}
	config.Options.ListenOnV6 = []string{"none"}
	if adjust != nil {
		adjust(&config)
	}
	files, err := named.Render(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(s.Layout.ConfigDir, name), text)
	}
	s.binary = binary
	s.run(t)
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("named:\n%s", s.Log())
		}
	})
	return s
}

// Stop ends named in good order. It may be called more than once.
func (s *Server) Stop() { s.stop() }

// Restart ends named and starts it again, with the files and ports that it had.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	s.run(t)
}

func layout(t testing.TB) named.Layout {
	dir := t.TempDir()
	ports, err := FreePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	l := named.Layout{
		ConfigDir: dir + "/etc", KeyDir: dir + "/etc/keys", CacheDir: dir + "/cache", ZonesDir: dir + "/cache/zones",
		RunDir: dir + "/run", ControlKeyFile: dir + "/run/rndc.key",
		Port: ports[0], ControlPort: ports[1], StatisticsPort: ports[2], NoticePort: ports[3],
	}
	for _, d := range []string{l.ConfigDir, l.KeyDir + "/update", l.KeyDir + "/transfer", l.ZonesDir, l.RunDir} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (s *Server) writeKeys(t testing.TB, server v1beta1.ServerRole) {
	var err error
	if s.Control, err = named.NewControlKey(""); err != nil {
		t.Fatal(err)
	}
	write(t, s.Layout.ControlKeyFile, s.Control.Clause())
	for role, key := range map[named.KeyRole]**wire.Key{named.KeyUpdate: &s.UpdateKey, named.KeyTransfer: &s.TransferKey} {
		if *key == nil {
			if *key, err = named.NewKey("test", "server", role); err != nil {
				t.Fatal(err)
			}
		}
		ring, err := named.NewKeyring(role, *key, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if role == named.KeyTransfer || server == v1beta1.RolePrimary {
			s.WriteKeyring(t, role, ring)
		}
	}
}

// WriteKeyring puts a key ring where named reads it the next time that it is told to.
func (s *Server) WriteKeyring(t testing.TB, role named.KeyRole, ring named.Keyring) {
	t.Helper()
	data, err := ring.Data(role)
	if err != nil {
		t.Fatal(err)
	}
	for entry, value := range data {
		write(t, filepath.Join(s.Layout.KeyDir, string(role), entry), string(value))
	}
}

func (s *Server) run(t testing.TB) {
	t.Helper()
	cmd := exec.Command(s.binary, "-f", "-4", "-n", "1", "-c", filepath.Join(s.Layout.ConfigDir, named.MainFile)) //nolint:gosec // a test
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
	}
	s.await(t, exited)
}

func (s *Server) await(t testing.TB, exited <-chan struct{}) {
	control := named.NewControl(s.ControlAddr(), s.Control)
	defer func() { _ = control.Close() }()
	var err error
	for range 200 {
		select {
		case <-exited:
			t.Fatalf("named ended\n%s", s.Log())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err = control.Command(ctx, "status")
		cancel()
		if err == nil {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("named does not answer: %v\n%s", err, s.Log())
}

// FreePorts finds ports that are free for TCP and UDP: named would share a busy one without a word.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		tcp, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = tcp.Close() }()
		port := tcp.Addr().(*net.TCPAddr).Port
		udp, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = udp.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
