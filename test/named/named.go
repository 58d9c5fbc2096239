// Package named runs real BIND servers for tests: child processes on free loopback ports, each with a directory of its
// own, stopped when the test ends. A test that cannot find named fails and says how to get it.
//
//	primary, secondaries := named.StartFleet(t, 2, named.Zone{Name: "example.test."})
//	reply, err := wire.Query(ctx, primary.Addr, "example.test.", dns.TypeSOA)
//
// The servers are set up as the project's own are: transfers and NOTIFY by key, zones updated by key, no delays.
package named

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Role of a server.
type Role string

// The roles.
const (
	Primary   Role = "primary"
	Secondary Role = "secondary"
)

// Options of a server. The zero value is a primary without zones.
type Options struct {
	Role Role
	// Addr and Control are what Reserve gave; reserved by Start when zero.
	Addr, Control netip.AddrPort
	// Update and Transfer are the keys with those rights. Made at random when empty; a secondary takes its primary's.
	Update, Transfer wire.Key
	// Keys are known to the server and have no rights.
	Keys []wire.Key
	// Zones to serve. A secondary needs their names only.
	Zones []Zone
	// Primary is where a secondary transfers from, or from AlsoPrimaries, which know the same transfer key.
	Primary       *Server
	AlsoPrimaries []netip.AddrPort
	// AlsoNotify are the secondaries' addresses.
	AlsoNotify []netip.AddrPort
	// Closed lets nobody transfer its zones.
	Closed bool
	// Extra is put into named.conf's options as it is.
	Extra string
	// Resolver makes the server a resolver: these clauses, at the top level of named.conf, say where zones are looked up.
	Resolver string
	// NoWait returns before the zones are loaded.
	NoWait bool
}

// Server is one running named.
type Server struct {
	// Addr answers DNS over UDP and TCP, Control speaks the rndc protocol with the key in ControlKey.
	Addr, Control netip.AddrPort
	ControlKey    wire.Key
	// Update and Transfer are the keys with those rights.
	Update, Transfer wire.Key
	// Dir is its working directory: named.conf, zone files, named.log.
	Dir string

	*process
	options Options
	token   string
}

// NewKey makes a random HMAC-SHA256 key.
func NewKey(name string) wire.Key {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return wire.Key{Name: name, Algorithm: "hmac-sha256.", Secret: base64.StdEncoding.EncodeToString(secret)}
}

// StartFleet starts a primary and so many secondaries of the zones, and waits until all serve them.
func StartFleet(t testing.TB, secondaries int, zones ...Zone) (*Server, []*Server) {
	t.Helper()
	o := Options{Role: Primary, Zones: zones}
	addrs := make([]netip.AddrPort, secondaries)
	for i := range addrs {
		addrs[i] = Reserve(t)
	}
	o.AlsoNotify = addrs
	primary := Start(t, o)
	all := make([]*Server, secondaries)
	for i := range all {
		all[i] = Start(t, Options{Role: Secondary, Addr: addrs[i], Primary: primary, Zones: zones})
	}
	return primary, all
}

// Start runs a server and waits until it serves its zones. It is stopped when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := newServer(t, o)
	if err := s.writeFiles(); err != nil {
		t.Fatalf("writing the configuration of named: %v", err)
	}
	s.start(t)
	return s
}

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Role == "" {
		o.Role = Primary
	}
	if o.Role == Secondary && o.Primary == nil {
		t.Fatal("a secondary needs Options.Primary")
	}
	if o.Primary != nil {
		o.Transfer = o.Primary.Transfer
	}
	for _, def := range []struct {
		key  *wire.Key
		name string
	}{{&o.Update, "update."}, {&o.Transfer, "transfer."}} {
		if *def.key == (wire.Key{}) {
			*def.key = NewKey(def.name)
		}
	}
	for _, addr := range []*netip.AddrPort{&o.Addr, &o.Control} {
		if !addr.IsValid() {
			*addr = Reserve(t)
		}
	}
	s := &Server{
		Addr: o.Addr, Control: o.Control, ControlKey: NewKey("rndc-key."),
		Update: o.Update, Transfer: o.Transfer,
		Dir: t.TempDir(), options: o, token: rand.Text(),
	}
	s.process = &process{dir: s.Dir, config: s.path("named.conf"), listens: []netip.AddrPort{s.Addr, s.Control}, waitReady: s.waitReady}
	return s
}

// Rndc runs an rndc command on the server and returns what it printed.
func (s *Server) Rndc(args ...string) (string, error) {
	args = append([]string{"-s", s.Control.Addr().String(), "-p", fmt.Sprint(s.Control.Port()), "-k", s.path("rndc.key")}, args...)
	out, err := exec.Command("rndc", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("rndc %s: %w", strings.Join(args[6:], " "), err)
	}
	return string(out), err
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

// waitReady waits until the server that answers is ours and serves every zone.
func (s *Server) waitReady(deadline time.Time) error {
	if err := s.waitFor(deadline, "it does not answer", s.isOurs); err != nil {
		return err
	}
	if s.options.NoWait {
		return nil
	}
	for _, z := range s.options.Zones {
		err := s.waitFor(deadline, "it does not serve "+z.Name, func() bool { return s.serves(z.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) isOurs() bool {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id()}}
	m.Question = []dns.Question{{Name: "id.server.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}}
	reply, err := s.ask(m)
	if err != nil || len(reply.Answer) == 0 {
		return false
	}
	txt, ok := reply.Answer[0].(*dns.TXT)
	return ok && len(txt.Txt) == 1 && txt.Txt[0] == s.token
}

func (s *Server) serves(zone string) bool {
	m := new(dns.Msg)
	m.SetQuestion(zone, dns.TypeSOA)
	reply, err := s.ask(m)
	return err == nil && reply.Rcode == dns.RcodeSuccess && reply.Authoritative && len(reply.Answer) == 1
}

func (s *Server) ask(m *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Net: "tcp", Timeout: time.Second} // over UDP named limits the rate of such questions
	reply, _, err := c.Exchange(m, s.Addr.String())
	return reply, err
}
