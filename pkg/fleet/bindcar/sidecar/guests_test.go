package sidecar

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// The key of a guest transfers the zone whose clause names it, and does nothing else: no other zone, no update. It may come before
// named knows the key, and stay when named does not know it any more.
func TestGuestKeys(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	ctx := testContext(t)
	ring, err := named.NewKeyring(named.KeyTransfer, s.TransferKey, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"open.example", "closed.example"} {
		if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
			t.Fatal(err)
		}
	}
	guest := guestOf(t, "isp", "team")
	transfers := func(zone string, want bool) {
		t.Helper()
		if _, err := wire.Transfer(ctx, s.DNS(), dns.Fqdn(zone), nil, guest); (err == nil) != want {
			t.Errorf("transfer of %s by the guest: %v, want %v", zone, err, want)
		}
		if _, err := wire.Transfer(ctx, s.DNS(), dns.Fqdn(zone), nil, s.TransferKey); err != nil {
			t.Errorf("our own transfer of %s: %v", zone, err)
		}
	}
	follow := func(guests ...*wire.Key) {
		t.Helper()
		var keys []named.GuestKey
		for _, g := range guests {
			keys = append(keys, named.GuestKey{Name: g.Name, Algorithm: g.Algorithm, Secret: g.Secret})
		}
		next, changed, err := ring.FollowGuests(named.KeyTransfer, s.TransferKey, keys)
		if err != nil || !changed {
			t.Fatalf("changed %v, %v", changed, err)
		}
		ring = reread(t, named.KeyTransfer, next)
		s.WriteKeyring(t, named.KeyTransfer, ring)
		if err := s.server.reconcile(ctx); err != nil {
			t.Fatal(err)
		}
	}

	outside := namedtest.Reserve(t)
	open := bindcar.PatchZone{AllowTransfer: &[]string{"key " + guest.Name}, AlsoNotify: &[]string{outside.String() + " key " + guest.Name}}
	if err := s.client.PatchZone(ctx, s.addr, "open.example", open); err != nil {
		t.Fatal(err)
	}
	transfers("open.example", false)
	follow(guest)
	transfers("open.example", true)
	transfers("closed.example", false)
	if rcode := updateWith(t, s.Pod, "open.example", "guest", guest); rcode != dns.RcodeRefused {
		t.Errorf("an update by the guest: %s", dns.RcodeToString[rcode])
	}
	s.Restart(t)
	transfers("open.example", true)

	other := guestOf(t, "isp", "team") // The same name with another secret: the key was rotated.
	follow(other)
	transfers("open.example", false)
	guest = other
	transfers("open.example", true)
	follow()
	transfers("open.example", false)
	s.Restart(t) // named loads a configuration in which a zone names a key that there is not.
	transfers("open.example", false)

	for _, algorithm := range []string{"hmac-sha224.", "hmac-sha384.", "hmac-sha512."} { // A provider's key has one of its own.
		guest.Algorithm = algorithm
		follow(guest)
		transfers("open.example", true)
	}

	many := []*wire.Key{guest}
	for range 600 {
		many = append(many, guestOf(t, "p"+strings.ToLower(randomName()), strings.Repeat("n", 63)))
	}
	follow(many...)
	transfers("open.example", true)
	closed := bindcar.PatchZone{AllowTransfer: &[]string{}, AlsoNotify: &[]string{}}
	if err := s.client.PatchZone(ctx, s.addr, "open.example", closed); err != nil {
		t.Fatal(err)
	}
	transfers("open.example", false)
	for _, bad := range []string{"192.0.2.1 key a\"; }; options {", "192.0.2.1 key ", "192.0.2.1 key x key y", "x key y"} {
		if err := s.client.PatchZone(ctx, s.addr, "open.example", bindcar.PatchZone{AlsoNotify: &[]string{bad}}); err == nil {
			t.Errorf("also-notify %q is accepted", bad)
		}
	}
}

// Whom the options let transfer may transfer a zone that a guest may transfer, too. A zone of an older sidecar becomes one.
func TestGuestBesideAllowTransfer(t *testing.T) {
	s := startBeside(t, namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, func(c *named.Config) {
		c.ACLs = map[string]v1beta1.AddressMatchList{"office": {"127.0.0.0/8"}}
		c.Options.AllowTransfer = v1beta1.AddressMatchList{"!127.0.0.2", "office"}
	}))
	ctx := testContext(t)
	const zone = "open.example"
	if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	transfers := func(when string, want bool) {
		t.Helper()
		if _, err := wire.Transfer(ctx, s.DNS(), zone+".", nil, nil); (err == nil) != want {
			t.Errorf("transfer by address %s: %v, want %v", when, err, want)
		}
	}
	transfers("at first", true)
	guest := guestOf(t, "isp", "team")
	if err := s.client.PatchZone(ctx, s.addr, zone, bindcar.PatchZone{AllowTransfer: &[]string{"key " + guest.Name}}); err != nil {
		t.Fatal(err)
	}
	transfers("beside a guest", true)

	old, err := s.server.zones.LoadDescription(zone)
	if err != nil {
		t.Fatal(err)
	}
	old.AdmitsGuests = false
	clause := strings.ReplaceAll(old.Clause(s.server.zones.Files(old.Name).Content()), strconv.Quote(clause.TransferACL)+"; ", "")
	if _, err := s.server.control.Command(ctx, "modzone "+zone+" "+clause); err != nil {
		t.Fatal(err)
	}
	if err := s.server.zones.SaveDescription(old); err != nil {
		t.Fatal(err)
	}
	transfers("as an older sidecar has it", false)
	if err := s.server.reconcile(ctx); err != nil {
		t.Fatal(err)
	}
	transfers("brought up to date", true)
}

// Who may transfer a zone may ask for it, whatever allowQuery says: secondaries refresh by SOA queries. Nobody else is let in.
func TestGuestBesideAllowQuery(t *testing.T) {
	s := startBeside(t, namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, func(c *named.Config) {
		c.Options.AllowQuery = v1beta1.AddressMatchList{"!127.0.0.4", "127.0.0.3"}
	}))
	ctx := testContext(t)
	for _, zone := range []string{"open.example", "closed.example"} {
		if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
			t.Fatal(err)
		}
	}
	guest := guestOf(t, "isp", "team")
	ring, err := named.NewKeyring(named.KeyTransfer, s.TransferKey, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := ring.FollowGuests(named.KeyTransfer, s.TransferKey, []named.GuestKey{{Name: guest.Name, Algorithm: guest.Algorithm, Secret: guest.Secret}})
	if err != nil {
		t.Fatal(err)
	}
	s.WriteKeyring(t, named.KeyTransfer, next)
	if err := s.server.reconcile(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.client.PatchZone(ctx, s.addr, "open.example", bindcar.PatchZone{AllowTransfer: &[]string{"key " + guest.Name, "127.0.0.2"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from string
		key  *wire.Key
		zone string
		want int
	}{
		{"127.0.0.1", nil, "open.example", dns.RcodeRefused},
		{"127.0.0.1", guest, "open.example", dns.RcodeSuccess},
		{"127.0.0.2", nil, "open.example", dns.RcodeSuccess},
		{"127.0.0.3", nil, "open.example", dns.RcodeSuccess},
		{"127.0.0.4", nil, "open.example", dns.RcodeRefused},
		{"127.0.0.1", s.UpdateKey, "open.example", dns.RcodeSuccess},
		{"127.0.0.1", s.TransferKey, "open.example", dns.RcodeSuccess},
		{"127.0.0.1", guest, "closed.example", dns.RcodeRefused},
		{"127.0.0.2", nil, "closed.example", dns.RcodeRefused},
		{"127.0.0.3", nil, "closed.example", dns.RcodeSuccess},
	} {
		if got := askFrom(t, s.DNS().String(), c.from, c.zone, c.key); got != c.want {
			t.Errorf("%s with key %v asks for %s: %s, want %s", c.from, c.key, c.zone, dns.RcodeToString[got], dns.RcodeToString[c.want])
		}
	}
}

// askFrom asks a server for a zone's SOA record from an address, and returns the answer's code.
func askFrom(t *testing.T, server, from, zone string, key *wire.Key) int {
	t.Helper()
	m := new(dns.Msg).SetQuestion(zone+".", dns.TypeSOA)
	c := dns.Client{Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}, Timeout: time.Minute}
	if key != nil {
		m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
		c.TsigSecret = map[string]string{key.Name: key.Secret}
	}
	reply, _, err := c.Exchange(m, server)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Rcode
}

// transferFrom returns how many records an address of this machine gets by a transfer without a key.
func transferFrom(t *testing.T, s *sidecar, from net.IP, zone string) (records int) {
	t.Helper()
	conn, err := net.DialTCP("tcp", &net.TCPAddr{IP: from}, net.TCPAddrFromAddrPort(s.DNS()))
	if err != nil {
		t.Fatal(err)
	}
	messages, err := (&dns.Transfer{Conn: &dns.Conn{Conn: conn}}).In(new(dns.Msg).SetAxfr(dns.Fqdn(zone)), s.DNS().String())
	if err != nil {
		t.Fatal(err)
	}
	for m := range messages {
		records += len(m.RR)
	}
	return records
}

// Wherever allowTransfer stands, in cluster, role or instance, and allowQuery, in cluster or instance: whom a zone's providers admit, by key or
// by address, comes in addition, and nobody else. Whoever may transfer the zone may ask for it.
func TestGuestBesideListsOfEveryPlace(t *testing.T) {
	listed, guest, stranger := net.IPv4(127, 0, 0, 2), net.IPv4(127, 0, 0, 3), net.IPv4(127, 0, 0, 4)
	list := v1beta1.AddressMatchList{listed.String()}
	in := func(transfer, query v1beta1.AddressMatchList) *v1beta1.Bind9Config {
		return &v1beta1.Bind9Config{AllowTransfer: transfer, AllowQuery: query}
	}
	for name, places := range map[string]struct {
		global *v1beta1.Bind9Config
		role   v1beta1.AddressMatchList
		own    *v1beta1.Bind9Config
	}{
		"global":                {global: in(list, list)},
		"role":                  {global: in(nil, list), role: list},
		"instance":              {own: in(list, list)},
		"role before global":    {global: in(v1beta1.AddressMatchList{stranger.String()}, list), role: list},
		"instance before all":   {global: in(v1beta1.AddressMatchList{stranger.String()}, v1beta1.AddressMatchList{stranger.String()}), role: v1beta1.AddressMatchList{stranger.String()}, own: in(list, list)},
		"instance, none at all": {global: in(list, list), own: in(v1beta1.AddressMatchList{}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := named.Workload{
				Cluster:  v1beta1.Bind9ClusterSpec{Global: places.global, Primary: &v1beta1.RoleConfig{AllowTransfer: places.role}},
				Instance: &v1beta1.Bind9Instance{Spec: v1beta1.Bind9InstanceSpec{Role: v1beta1.RolePrimary, Config: places.own}},
			}
			s := startBeside(t, namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, func(c *named.Config) {
				merged := w.Config().Options
				c.Options.AllowTransfer, c.Options.AllowQuery = merged.AllowTransfer, merged.AllowQuery
			}))
			ctx := testContext(t)
			const zone = "open.example"
			if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
				t.Fatal(err)
			}
			if err := s.client.PatchZone(ctx, s.addr, zone, bindcar.PatchZone{AllowTransfer: &[]string{guest.String()}}); err != nil {
				t.Fatal(err)
			}
			for _, from := range []struct {
				address   net.IP
				transfers bool
				asks      bool
			}{{listed, name != "instance, none at all", true}, {guest, true, true}, {stranger, false, false}} {
				if records := transferFrom(t, s, from.address, zone); (records > 0) != from.transfers {
					t.Errorf("%s transfers %d records, want some: %t", from.address, records, from.transfers)
				}
				if rcode := askFrom(t, s.DNS().String(), from.address.String(), zone, nil); (rcode == dns.RcodeSuccess) != from.asks {
					t.Errorf("%s asks: %s, want an answer: %t", from.address, dns.RcodeToString[rcode], from.asks)
				}
			}
		})
	}
}

// A secondary by address gets NOTIFY that is not signed, and transfers its zone without a key from its address; nobody else does, nor any
// other zone. That lasts until the zone does not name it any more.
func TestSecondaryByAddress(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	ctx := testContext(t)
	for _, zone := range []string{"open.example", "closed.example"} {
		if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
			t.Fatal(err)
		}
	}
	outside := net.IPv4(127, 0, 0, 2)
	listener, err := net.ListenUDP("udp", &net.UDPAddr{IP: outside})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	transfers := func(from net.IP, zone string, want bool) {
		t.Helper()
		if records := transferFrom(t, s, from, zone); (records > 0) != want {
			t.Errorf("%s transfers %s: %d records, want some: %t", from, zone, records, want)
		}
	}
	patch := func(transfer, notify []string) {
		t.Helper()
		if err := s.client.PatchZone(ctx, s.addr, "open.example", bindcar.PatchZone{AllowTransfer: &transfer, AlsoNotify: &notify}); err != nil {
			t.Fatal(err)
		}
	}
	transfers(outside, "open.example", false)
	patch([]string{"127.0.0.2"}, []string{listener.LocalAddr().String() + clause.Unsigned})
	transfers(outside, "open.example", true)
	transfers(net.IPv4(127, 0, 0, 3), "open.example", false)
	transfers(outside, "closed.example", false)
	s.update(t, "open.example", 1)
	for { // Others are about what named did before.
		if err := listener.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, dns.MinMsgSize)
		size, _, err := listener.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(buffer[:size]); err != nil || m.Opcode != dns.OpcodeNotify || m.Question[0].Name != "open.example." || m.IsTsig() != nil {
			t.Fatalf("%v, %v", m, err)
		}
		if soa, is := m.Answer[0].(*dns.SOA); is && soa.Serial > firstSerial {
			break
		}
	}
	s.Restart(t)
	transfers(outside, "open.example", true)
	patch([]string{}, []string{})
	transfers(outside, "open.example", false)
}

// A key that begins to change is found to be loaded whatever it is named, also when its successor is a name below it.
func TestKeysBelowEachOther(t *testing.T) {
	for _, name := range []string{"admin.", "zone.admin.", "zz.", "0.0."} {
		before, after := namedtest.NewKey(name), namedtest.NewKey(name)
		s := start(t, v1beta1.RolePrimary, [2]*wire.Key{&before, nil})
		ring, err := named.NewKeyring(named.KeyUpdate, &before, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		next, _, err := ring.Follow(named.KeyUpdate, &after, named.KeyFacts{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.WriteKeyring(t, named.KeyUpdate, next)
		if err := s.server.reconcile(testContext(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func randomName() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return 'x'
	}, namedtest.NewKey("x.").Secret)
}

// guestOf makes the key of a provider's secondaries.
func guestOf(t *testing.T, provider, namespace string) *wire.Key {
	t.Helper()
	name, err := serving.GuestKeyName(namespace, provider)
	if err != nil {
		t.Fatal(err)
	}
	key := namedtest.NewKey(name)
	if _, err := named.NewGuestKey(namespace, provider, &key); err != nil {
		t.Fatal(err)
	}
	return &key
}
