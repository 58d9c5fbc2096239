package sidecar

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/statistics"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// pairByProxy starts a primary and a secondary that has followed it to firstSerial, and reaches it by a proxy alone.
func pairByProxy(t *testing.T, zone string) (p, s *sidecar, proxy *bind.Proxy) {
	t.Helper()
	p = start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	s = start(t, v1beta1.RoleSecondary, [2]*wire.Key{p.UpdateKey, p.TransferKey})
	ctx := testContext(t)
	if err := p.client.CreateZone(ctx, p.addr, primaryZone(zone, p.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	proxy = bind.StartProxy(t, p.DNS())
	err := s.client.CreateZone(ctx, s.addr, bindcar.CreateZone{ZoneName: zone, ZoneType: bindcar.Secondary, ZoneConfig: bindcar.ZoneConfig{Primaries: []string{proxy.Addr.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == firstSerial })
	return p, s, proxy
}

// named remembers for ten minutes that a primary refused connections. The order to transfer the zone gets past that, and
// is refused while the primary still does.
func TestRetransferReachesAPrimaryThatWasUnreachable(t *testing.T) {
	const zone = "stale.example"
	p, s, proxy := pairByProxy(t, zone)
	ctx := testContext(t)
	serial := uint32(firstSerial)
	follows := func() bool { return serialOf(t, s.DNS(), zone) == serial }

	proxy.RefuseTCP()
	change := func() {
		serial++
		p.update(t, zone, int(serial))
	}
	change()
	refreshes := 0
	eventually(t, func() bool {
		skipped := strings.Count(s.Log(), "is unreachable (cached)")
		if skipped+strings.Count(s.Log(), "failed to connect") < refreshes {
			return false // One is under way, and would take the order for itself.
		}
		if skipped == 0 {
			refreshes++
			_, _ = s.server.control.Command(ctx, "refresh "+zone)
		}
		return skipped > 0
	})
	order := func() error {
		_, err := s.client.Command(ctx, s.addr, zone, "retransfer")
		return err
	}
	if err := order(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("the order to transfer from a primary that accepts no connections: %v", err)
	}
	proxy.AcceptTCP(t)
	for _, source := range []string{"127.0.0.1", "127.0.0.1 port ", "127.0.0.1 port "} {
		if err := order(); err != nil {
			t.Fatal(err)
		}
		eventually(t, follows)
		if description, err := s.server.zones.LoadDescription(zone); err != nil || !strings.HasPrefix(description.TransferSource, source) {
			t.Errorf("it transfers from %q, want %q: %v", description.TransferSource, source, err)
		}
		change()
	}
}

// refreshUntil has named ask its primary until an answer is lost: it ignores the order while a transfer is under way.
func refreshUntil(t *testing.T, s *sidecar, zone string, lost *atomic.Int32) {
	t.Helper()
	ctx := testContext(t)
	eventually(t, func() bool {
		if lost.Load() > 0 {
			return true
		}
		if _, err := s.server.control.Command(ctx, "refresh "+zone); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// named waits five seconds for a primary's answer, and then asks once more. The order to transfer the zone does not wait, not even when
// the sidecar cannot save what it changes for that.
func TestRetransferDoesNotWaitForALostAnswer(t *testing.T) {
	const zone = "lossy.example"
	p, s, proxy := pairByProxy(t, zone)
	ctx := testContext(t)
	serial := uint32(firstSerial)
	description := strings.TrimSuffix(s.server.zones.Files(zone).Content(), ".zone") + ".json.new"
	// isServedAtOnce reports whether the order was carried out sooner than named gives up a question.
	isServedAtOnce := func() bool {
		var lost atomic.Int32
		proxy.Filter(func(network string, reply []byte) ([]byte, error) {
			if network == "udp" {
				lost.Add(1)
				return nil, nil
			}
			return reply, nil
		})
		asked := time.Now()
		refreshUntil(t, s, zone, &lost)
		proxy.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
		serial++
		p.update(t, zone, int(serial))
		if _, err := s.client.Command(ctx, s.addr, zone, "retransfer"); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == serial })
		return time.Since(asked) < 5*time.Second
	}
	for ordered := 1; ordered <= 4; ordered++ {
		if ordered == 2 { // Nothing can be saved for a while.
			if err := os.MkdirAll(description, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(description); err != nil {
			t.Fatal(err)
		}
		const tries = 4 // for a machine that is slow at times
		for try := 1; !isServedAtOnce(); try++ {
			if try == tries {
				t.Fatalf("order %d: each of %d transfers waited until named gave up its question", ordered, tries)
			}
		}
	}
}

// A primary may have gone while named waits for the rest of a transfer. The order to transfer the zone ends that one.
func TestRetransferEndsAStuckTransfer(t *testing.T) {
	const zone = "stuck.example"
	p, s, proxy := pairByProxy(t, zone)
	ctx := testContext(t)
	if _, err := s.server.statistics.Transfers(ctx); err != nil {
		t.Skip("this release lists no transfers, and cannot end one:", err)
	}
	var lost atomic.Int32
	proxy.Filter(func(network string, reply []byte) ([]byte, error) {
		if network == "tcp" {
			lost.Add(1)
			return nil, nil
		}
		return reply, nil
	})
	p.update(t, zone, firstSerial+1)
	refreshUntil(t, s, zone, &lost)
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
	eventually(t, func() bool {
		if _, err := s.client.Command(ctx, s.addr, zone, "retransfer"); err != nil {
			t.Error(err)
		}
		return serialOf(t, s.DNS(), zone) == firstSerial+1
	})
	if !strings.Contains(s.Log(), "Transfer status: shutting down") {
		t.Error("named gave up the transfer by itself, after its own time")
	}
}

// What has brought nothing for a while is stuck; what brings little is not, nor what has just begun.
func TestStuckTransfers(t *testing.T) {
	began := time.Now()
	list := func(after time.Duration, transfers ...statistics.Transfer) transferList {
		l := newTransferList(transfers)
		l.at = began.Add(after)
		return l
	}
	for name, c := range map[string]struct {
		former, last transferList
		want         bool
	}{
		"none":              {list(0), list(3 * time.Second), false},
		"waiting":           {list(0), list(3*time.Second, statistics.Transfer{Zone: "a.example"}), false},
		"just begun":        {list(0), list(3*time.Second, statistics.Transfer{Zone: "a.example", Seconds: 1}), false},
		"no answer":         {list(0), list(time.Second, statistics.Transfer{Zone: "a.example", Seconds: 2}), true},
		"first list":        {transferList{}, list(0, statistics.Transfer{Zone: "a.example", Seconds: 9, Bytes: 9}), false},
		"slow":              {list(0, statistics.Transfer{Zone: "a.example", Seconds: 5, Bytes: 7}), list(3*time.Second, statistics.Transfer{Zone: "a.example", Seconds: 8, Bytes: 9}), false},
		"still":             {list(0, statistics.Transfer{Zone: "a.example", Seconds: 5, Bytes: 9}), list(3*time.Second, statistics.Transfer{Zone: "a.example", Seconds: 8, Bytes: 9}), true},
		"still for a blink": {list(0, statistics.Transfer{Zone: "a.example", Seconds: 5, Bytes: 9}), list(time.Second, statistics.Transfer{Zone: "a.example", Seconds: 6, Bytes: 9}), false},
		"the next one":      {list(0, statistics.Transfer{Zone: "a.example", Seconds: 5, Bytes: 9}), list(3*time.Second, statistics.Transfer{Zone: "a.example", Seconds: 1, Bytes: 9}), false},
		"another zone":      {list(0), list(3*time.Second, statistics.Transfer{Zone: "b.example", Seconds: 8}), false},
	} {
		if got := c.last.showsStuck("a.example", c.former); got != c.want {
			t.Errorf("%s: stuck is %v", name, got)
		}
	}
}

// A pod that comes back with another address does not go on asking from its former one.
func TestFormerSourceIsDropped(t *testing.T) {
	const zone = "moved.example"
	_, s := pair(t, zone)
	ctx := testContext(t)
	for source, kept := range map[string]bool{"192.0.2.77": false, "127.0.0.1": true} {
		description, err := s.server.zones.LoadDescription(zone)
		if err != nil {
			t.Fatal(err)
		}
		description.TransferSource = source
		if err := s.server.replaceClause(ctx, description, description); err != nil {
			t.Fatal(err)
		}
		if err := s.server.reconcile(ctx); err != nil {
			t.Fatal(err)
		}
		if description, err = s.server.zones.LoadDescription(zone); err != nil || (description.TransferSource == source) != kept {
			t.Errorf("source %s is kept: %q, %v", source, description.TransferSource, err)
		}
	}
}

// The first requests for a connection to a primary are lost. TCP would send them again after a second.
func TestPrimaryThatAnswersLateIsReached(t *testing.T) {
	primary, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(primary) }()
	// With such a queue, further requests are dropped until a connection is accepted.
	if err := errors.Join(syscall.Bind(primary, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(primary, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(primary)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
	for full := false; !full; {
		waiting, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if full = err != nil; !full {
			defer func() { _ = waiting.Close() }()
		}
	}
	time.AfterFunc(firstDialTimeout/2, func() {
		for range 2 {
			if accepted, _, err := syscall.Accept(primary); err == nil {
				_ = syscall.Close(accepted)
			}
		}
	})
	if source, err := dialAny(t.Context(), []string{address}); err != nil || source != "127.0.0.1" {
		t.Errorf("connected from %q: %v", source, err)
	}
}
