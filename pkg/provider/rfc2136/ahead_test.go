package rfc2136_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// fiveMessages are changes that take five messages.
func fiveMessages() (c plan.Changes) {
	for i := range 4500 {
		c.Create = append(c.Create, set(fmt.Sprintf("h%04d", i), "A", 60, "192.0.2.1"))
	}
	return c
}

// startSwapper starts a relay to a server that holds the first message back until it has passed on the second.
func startSwapper(t *testing.T, server netip.AddrPort) netip.AddrPort {
	t.Helper()
	return tcpserver.Start(t, func(client net.Conn) {
		upstream, err := net.Dial("tcp", server.String())
		if err != nil {
			return
		}
		defer upstream.Close()
		go func() {
			_, _ = io.Copy(client, upstream)
			_ = client.Close()
		}()
		var held [2][]byte
		for i := range held {
			if held[i], err = readFramed(client); err != nil {
				return
			}
		}
		_, _ = upstream.Write(append(held[1], held[0]...))
		_, _ = io.Copy(upstream, client)
	})
}

// readFramed reads a message with its length prefix.
func readFramed(r io.Reader) ([]byte, error) {
	framed := make([]byte, 2)
	if _, err := io.ReadFull(r, framed); err != nil {
		return nil, err
	}
	framed = append(framed, make([]byte, binary.BigEndian.Uint16(framed))...)
	_, err := io.ReadFull(r, framed[2:])
	return framed, err
}

// TestOvertaken: a message that the server gets before the one that was sent before it has no effect, and is sent again.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.target.Server = startSwapper(t, b.server.Addr)
	c := fiveMessages()
	result, err := b.apply(c)
	if err != nil || len(result.Refused) > 0 {
		t.Fatalf("refused %v, error %v", result.Refused, err)
	}
	if m := b.read(); m.Len() != 2+c.Len() || m.SOA != result.SOA {
		t.Errorf("%d RRsets, SOA %+v, result's %+v", m.Len(), m.SOA, result.SOA)
	}
}

// TestRefusedAmongMany: the messages that were sent after one that the server refuses have no effect, and are sent again.
func TestRefusedAmongMany(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	c := fiveMessages()
	bad := set("h1500_", "A", 60, "192.0.2.1") // check-names
	c.Create = append(c.Create, bad)
	have := b.read().SOA
	result, err := b.provider.Apply(t.Context(), b.target, c, have, ahead(have, 100))
	if err != nil || len(result.Refused) != 1 || result.Refused[bad.Key] == nil {
		t.Fatalf("refused %v, error %v", result.Refused, err)
	}
	if m := b.read(); m.Len() != 2+c.Len()-1 || m.SOA != result.SOA || m.SOA.Serial != have.Serial+100 {
		t.Errorf("%d RRsets, SOA %+v, result's %+v", m.Len(), m.SOA, result.SOA)
	}
	t.Logf("%d messages", result.Sent)
}

// TestOthersBetween: somebody else changes the zone while messages are under way. What comes after that has no effect.
func TestOthersBetween(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	other := rfc2136.New(rfc2136.Options{})
	t.Cleanup(other.Close)
	proxy := named.StartProxy(t, b.server.Addr)
	var theirs rrset.SOA
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		for theirs == (rrset.SOA{}) {
			have := b.observer.Serial(t.Context(), b.server.Addr, zone, nil).SOA
			change := plan.Changes{Create: []rrset.RRset{set("other", "TXT", 60, `"x"`)}}
			if done, err := other.Apply(t.Context(), b.target, change, have, ahead(have, 1000)); err == nil {
				theirs = done.SOA
			} else if !errors.Is(err, rfc2136.ErrConflict) {
				return nil, err
			}
		}
		return reply, nil
	})
	target := b.target
	target.Server = proxy.Addr
	have := b.read().SOA
	result, err := b.provider.Apply(t.Context(), target, fiveMessages(), have, ahead(have, 10))
	m := b.read()
	if _, there := m.Get(key("other", "TXT")); !errors.Is(err, rfc2136.ErrConflict) || !there || m.SOA != theirs {
		t.Fatalf("result %+v, error %v, SOA %+v, theirs %+v", result, err, m.SOA, theirs)
	}
	if want := 3 + 1000*int(result.SOA.Serial-have.Serial); m.Len() != want {
		t.Errorf("%d RRsets, want %d after %d messages", m.Len(), want, result.SOA.Serial-have.Serial)
	}
}

// TestCutBetween: the connection ends while messages are under way. What was answered is known, the rest is not.
func TestCutBetween(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	proxy := named.StartProxy(t, b.server.Addr)
	replies := 0
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		if replies++; replies == 3 {
			return nil, named.ErrHangUp
		}
		return reply, nil
	})
	target := b.target
	target.Server = proxy.Addr
	have := b.read().SOA
	result, err := b.provider.Apply(t.Context(), target, fiveMessages(), have, ahead(have, 10))
	if !errors.Is(err, rfc2136.ErrUnknown) || result.SOA.Serial != have.Serial+2 {
		t.Fatalf("result %+v, error %v", result, err)
	}
	if m := b.read(); m.Len() < 2+2000 {
		t.Errorf("%d RRsets", m.Len())
	}
}
