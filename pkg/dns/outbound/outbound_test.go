package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

func TestPermits(t *testing.T) {
	for address, want := range map[string]bool{
		"10.0.0.5": true, "192.0.2.1": true, "2001:db8::1": true, "fd00::5": true, "::ffff:10.0.0.5": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"169.254.169.254": false, "fe80::1": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false,
		"fd00:ec2::254": false, "fd20:ce::254": false, "168.63.129.16": false, "100.100.100.200": false,
		// NAT64, with the well-known prefix and with those of RFC 8215: /48, /56, /64 and /96.
		"64:ff9b::192.0.2.1": true, "64:ff9b::127.0.0.1": false, "64:ff9b::a9fe:a9fe": false,
		"64:ff9b:1:a9fe:a9:fe00::": false, "64:ff9b:1:a9:fe:a9fe::": false, "64:ff9b:1:0:a9:fea9:fe00:0": false, "64:ff9b:1::169.254.169.254": false,
		"64:ff9b:1::192.0.2.1": true,
		// 6to4, and IPv4-compatible addresses.
		"2002:c000:201::1": true, "2002:7f00:1::1": false, "2002:a9fe:a9fe::": false, "::127.0.0.1": false, "::169.254.169.254": false,
	} {
		if got := Permits(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is permitted: %t", address, got)
		}
	}
	if Permits(netip.MustParseAddr("fd00::1%eth0")) || Permits(netip.Addr{}) {
		t.Error("an address with a zone, or none, is permitted")
	}
}

func anywhere(netip.Addr) bool { return true }

// startSilent runs a server that keeps connections open.
func startSilent(t *testing.T) string {
	return tcpserver.Start(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }).String()
}

// An object waits while it has as many connections as it may, and so does a namespace; others do not. A connection that ends makes
// room, however often it is closed.
func TestConnectionsAreBounded(t *testing.T) {
	server := startSilent(t)
	g := NewGate(anywhere, Limits{Connections: 3})
	one, two, other := g.Account("a", "one", 2), g.Account("a", "two", 2), g.Account("b", "one", 2)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var open []net.Conn
	for _, a := range []*Account{one, one, two, other} {
		c, err := a.Dial(t.Context(), "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		t.Cleanup(func() { _ = c.Close() })
	}
	for want, a := range map[string]*Account{"one of namespace a has 2 connections": one, "namespace a has 3 connections": two} {
		if _, err := a.Dial(over, "tcp", server); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		c, err := one.Dial(t.Context(), "tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close()
	})
	_, _ = open[0].Close(), open[0].Close()
	waiting.Wait()
	for _, c := range open {
		_ = c.Close()
	}
	if len(g.connections.byKey) > 0 {
		t.Errorf("%d queues are left", len(g.connections.byKey))
	}
}

// What a host name resolves to is checked when it is connected to, by every protocol.
func TestForbiddenAddresses(t *testing.T) {
	server := startSilent(t)
	_, port, _ := net.SplitHostPort(server)
	ctx := WithAccount(t.Context(), NewGate(nil, Limits{}).Account("a", "one", 1))
	for _, network := range []string{"tcp", "udp"} {
		for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
			if c, err := Dial(ctx, network, net.JoinHostPort(host, port)); err == nil {
				_ = c.Close()
				t.Errorf("%s %s is connected to", network, host)
			}
		}
	}
	at := netip.MustParseAddrPort(server).Addr()
	for of, a := range map[string]*Account{"instances": NewGate(nil, Limits{}).Instances("a"), "a sidecar": NewGate(nil, Limits{}).Sidecar("a", at)} {
		if _, err := a.Dial(t.Context(), "tcp", server); !errors.Is(err, ErrForbidden) {
			t.Errorf("the account of %s checks no addresses: %v", of, err)
		}
	}
	c, err := Dial(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// Each address of a context has its account, and a connection says when its account or namespace has more than half of what it may have.
func TestAccountsByAddress(t *testing.T) {
	server, free := startSilent(t), startSilent(t)
	g := NewGate(anywhere, Limits{Connections: 5})
	one, two := g.Account("a", "one", 3), g.Account("a", "two", 5)
	at := func(a *Account) context.Context {
		return WithAccounts(t.Context(), func(address string) *Account {
			if address == server {
				return a
			}
			return nil
		})
	}
	for i, step := range []struct {
		account *Account
		crowded bool
	}{{one, false}, {one, true}, {two, true}} {
		c, err := Dial(at(step.account), "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if IsCrowded(c) != step.crowded {
			t.Errorf("connection %d: crowded is %t", i, !step.crowded)
		}
	}
	for of, a := range map[string]*Account{"no account": nil, "a gate that is nil": (*Gate)(nil).Account("a", "one", 1), "an account that counts nothing": g.Instances("a")} {
		c, err := Dial(at(a), "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		if IsCrowded(c) {
			t.Errorf("a connection of %s is crowded", of)
		}
		_ = c.Close()
	}
	c, err := Dial(at(one), "tcp", free)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if n := g.connections.byKey["a/one"].users; n != 2 {
		t.Errorf("the account has %d connections, want those to its address", n)
	}
}

func TestAbsoluteNames(t *testing.T) {
	for name, want := range map[string]string{
		"ns.example.net": "ns.example.net.", "ns.example.net.": "ns.example.net.", "ns": "ns.", "192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "": "",
	} {
		if got := AbsoluteName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// A namespace gets half of the memory, an answer what one may have, and what is released is there for others.
func TestMemoryIsBounded(t *testing.T) {
	g := NewGate(nil, Limits{Bytes: 400})
	a, b, c := g.Account("a", "x", 1).Reserve(150), g.Account("a", "y", 1).Reserve(150), g.Account("b", "x", 1).Reserve(1000)
	for _, step := range []struct {
		of    *Reservation
		bytes int64
		want  string
	}{
		{a, 100, ""}, {a, 51, "one zone"}, {b, 100, ""}, {b, 1, "namespace a"}, {c, 200, ""}, {c, 1, "namespace b"},
	} {
		err := step.of.Add(step.bytes)
		if large, ok := errors.AsType[*TooLargeError](err); (err == nil) != (step.want == "") || err != nil && (!ok || large.What != step.want || large.Shared == (step.want == "one zone")) {
			t.Errorf("%d bytes: %v, want %q", step.bytes, err, step.want)
		}
	}
	a.Release()
	a.Release()
	if err := b.Add(50); err != nil {
		t.Error(err)
	}
	b.Release()
	c.Release()
	if g.bytes.Used() != 0 {
		t.Errorf("%d bytes are in use", g.bytes.Used())
	}
	var none *Account
	if err := none.Reserve(10).Add(11); err == nil {
		t.Error("an answer without an account has no limit")
	}
}

// Requests of one object leave room for those of another one of its namespace, and all have a limit.
func TestRequestsAreBounded(t *testing.T) {
	g := NewGate(nil, Limits{Requests: 4})
	one, two := g.Account("a", "one", 1), g.Account("a", "two", 1)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := one.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Begin(over); err == nil {
		t.Error("one object has more than half of the requests")
	}
	done, err := two.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done()
	done()
	for i := range 16 - 2 {
		if done, err = g.Account(string(rune('b'+i)), "one", 1).Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Account("z", "one", 1).Begin(over); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "all namespaces") {
		t.Errorf("error %v", err)
	}
	done()
	if _, err := g.Account("z", "one", 1).Begin(over); err != nil {
		t.Error(err)
	}
}

// What tenants name is in none of the forbidden networks, in no form. Servers of instances, whose pods are there, may be.
func TestForbiddenNetworks(t *testing.T) {
	var networks Networks
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	networks.AddFlag(flags)
	if err := flags.Parse([]string{"--forbidden-networks=10.96.0.0/12, fd00:10::/108", NetworksFlag + "=127.0.0.0/8"}); err != nil {
		t.Fatal(err)
	}
	if got, want := networks.String(), "10.96.0.0/12,fd00:10::/108,127.0.0.0/8"; got != want {
		t.Errorf("the flag is %q, want %q", got, want)
	}
	for text, want := range map[string]string{"10.96.0.1/12": "an address in the network 10.96.0.0/12", "10.96.0.1": "no network", "": "no network", "::ffff:10.96.0.0/108": "write it as IPv4"} {
		if err := new(Networks).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	g := NewGate(nil, Limits{Networks: networks})
	for address, want := range map[string]bool{
		"10.96.0.10": false, "::ffff:10.96.0.10": false, "64:ff9b::a60:a": false, "2002:a60:a::1": false, "fd00:10::7": false,
		"10.112.0.1": true, "fd00:11::7": true, "192.0.2.1": true, "169.254.169.254": false,
	} {
		if got := g.Permits(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
	server := startSilent(t)
	open := NewGate(anywhere, Limits{Networks: networks})
	_, err := open.Account("a", "one", 1).Dial(t.Context(), "tcp", server)
	if !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), NetworksFlag) {
		t.Errorf("a tenant's server: %v", err)
	}
	at := netip.MustParseAddrPort(server).Addr()
	for of, a := range map[string]*Account{"instances": open.Instances("a"), "a sidecar": open.Sidecar("a", at)} {
		c, err := a.Dial(t.Context(), "tcp", server)
		if err != nil {
			t.Errorf("%s: %v", of, err)
			continue
		}
		_ = c.Close()
	}
	if (*Gate)(nil).Permits(at) || !(*Gate)(nil).Permits(netip.MustParseAddr("10.96.0.10")) {
		t.Error("without a gate other addresses are permitted than by Permits")
	}
}
