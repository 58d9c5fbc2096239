package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/notify"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// subscriber is a stream of notices, opened.
type subscriber struct {
	notices chan bindcar.Notification
	ended   chan error
	cancel  context.CancelFunc
}

func (s *sidecar) subscribe(t testing.TB) *subscriber {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	sub := &subscriber{make(chan bindcar.Notification, 10000), make(chan error, 1), cancel}
	go func() {
		sub.ended <- s.client.ReadNotifications(ctx, s.addr, func(n bindcar.Notification) { sub.notices <- n })
	}()
	if first := sub.next(t); !first.Lost {
		t.Errorf("a stream begins with %+v", first)
	}
	return sub
}

func (s *subscriber) next(t testing.TB) bindcar.Notification {
	t.Helper()
	select {
	case n := <-s.notices:
		return n
	case err := <-s.ended:
		t.Fatalf("the stream ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no notice")
	}
	return bindcar.Notification{}
}

// await reads on to a notice about the zone with the serial.
func (s *subscriber) await(t testing.TB, zone string, serial uint32) bindcar.Notification {
	t.Helper()
	for {
		if n := s.next(t); n.Zone == zone && ptr.Deref(n.Serial, 0) == serial {
			return n
		}
	}
}

func (s *subscriber) end(t testing.TB) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the stream does not end")
	}
	return nil
}

// pair is a primary and a secondary with one zone, both with sidecars.
func pair(t testing.TB, zone string) (p, s *sidecar) {
	t.Helper()
	p = start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	s = start(t, v1beta1.RoleSecondary, [2]*wire.Key{p.UpdateKey, p.TransferKey})
	ctx := testContext(t)
	request := primaryZone(zone, p.UpdateKey.Name)
	request.ZoneConfig.AlsoNotify = []string{s.DNS().String()}
	if err := p.client.CreateZone(ctx, p.addr, request); err != nil {
		t.Fatal(err)
	}
	err := s.client.CreateZone(ctx, s.addr, bindcar.CreateZone{ZoneName: zone, ZoneType: bindcar.Secondary, ZoneConfig: bindcar.ZoneConfig{Primaries: []string{p.DNS().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == firstSerial })
	return p, s
}

// firstSerial is that of the zones of these tests.
const firstSerial = 1763690000

// update adds a record, which raises the serial by one.
func (s *sidecar) update(t testing.TB, zone string, n int) {
	t.Helper()
	update := new(dns.Msg).SetUpdate(dns.Fqdn(zone))
	update.Insert([]dns.RR{&dns.A{
		Hdr: dns.RR_Header{Name: fmt.Sprintf("h%d.%s.", n, zone), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 9),
	}})
	conn, err := wire.Dial(testContext(t), s.DNS(), s.UpdateKey)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if reply, err := conn.Exchange(testContext(t), update); err != nil || reply.Rcode != dns.RcodeSuccess {
		t.Fatalf("update: %v, %v", reply, err)
	}
}

// TestNotices follows a change from the primary's update to the sidecars of both servers, before and after each part
// has been restarted.
func TestNotices(t *testing.T) {
	const zone = "notice.example"
	p, s := pair(t, zone)
	serial := uint32(firstSerial)
	change := func(name string, subscribers ...*subscriber) {
		t.Helper()
		serial++
		began := time.Now()
		p.update(t, zone, int(serial))
		for i, sub := range subscribers {
			n := sub.await(t, zone, serial)
			t.Logf("%s: subscriber %d heard after %v, its sidecar after %v", name, i, time.Since(began), n.At.Sub(began))
		}
	}
	atPrimary, second, atSecondary := p.subscribe(t), p.subscribe(t), s.subscribe(t)
	change("first change", atPrimary, second, atSecondary)
	change("second change", atPrimary, second, atSecondary)

	second.cancel()
	if err := second.end(t); !errors.Is(err, context.Canceled) {
		t.Errorf("a subscriber who goes: %v", err)
	}
	change("one subscriber less", atPrimary, atSecondary)

	p.Restart(t)
	atPrimary.await(t, zone, serial)
	change("the primary restarted", atPrimary, atSecondary)
	s.Restart(t)
	atSecondary.await(t, zone, serial)
	change("the secondary restarted", atPrimary, atSecondary)

	p.stop()
	if err := atPrimary.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("a sidecar that stops: %v", err)
	}
	change("while the primary's sidecar is away", atSecondary)
	p.run(t, nil)
	change("the sidecar restarted", p.subscribe(t), atSecondary)
}

// TestNoticesOfManyZones: at its start named tells of all zones, and goes on with its work meanwhile.
func TestNoticesOfManyZones(t *testing.T) {
	const zones = 1000
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	for i := range zones {
		zone := primaryZone(fmt.Sprintf("z%d.example", i), s.UpdateKey.Name)
		if err := s.client.CreateZone(testContext(t), s.addr, zone); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop()
	sub := s.subscribe(t)
	began := time.Now()
	s.Restart(t)
	heard := map[string]bool{}
	answered := 0
	for len(heard) < zones {
		n := sub.next(t)
		heard[n.Zone] = true
		if len(heard) == 100 {
			// named is busy telling, and takes updates all the same.
			before := time.Now()
			s.update(t, "z7.example", 1)
			t.Logf("an update took %v with %d of %d zones told", time.Since(before), len(heard), zones)
			answered++
		}
	}
	t.Logf("%d zones told %v after the start", zones, time.Since(began))
	if answered == 0 {
		t.Error("no update was tried")
	}
}

// TestTakeNotify speaks to the listener as named does, and as it never would.
func TestTakeNotify(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	if err := s.client.CreateZone(testContext(t), s.addr, primaryZone("known.example", s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	sub := s.subscribe(t)
	notify := func(zone string) *dns.Msg {
		return new(dns.Msg).SetNotify(zone)
	}
	with := func(m *dns.Msg, serial uint32) *dns.Msg {
		m.Answer = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeSOA, Class: dns.ClassINET}, Ns: ".", Mbox: ".", Serial: serial}}
		return m
	}
	other := func(qtype, class uint16) *dns.Msg {
		m := notify("wrong.example.")
		m.Question[0].Qtype, m.Question[0].Qclass = qtype, class
		return m
	}
	cases := map[string]struct {
		message *dns.Msg
		rcode   int
		want    string
	}{
		"with serial":      {with(notify("Some.Example."), 7), dns.RcodeSuccess, "some.example 7"},
		"without serial":   {notify("known.example."), dns.RcodeSuccess, "known.example 1763690000"},
		"of no zone here":  {notify("unknown.example."), dns.RcodeSuccess, "unknown.example without serial"},
		"hostile name":     {notify(`a\032b\059reload.example.`), dns.RcodeSuccess, `a\ b\;reload.example without serial`},
		"query":            {new(dns.Msg).SetQuestion("known.example.", dns.TypeSOA), dns.RcodeRefused, ""},
		"update":           {new(dns.Msg).SetUpdate("known.example."), dns.RcodeNotImplemented, ""},
		"of an A record":   {other(dns.TypeA, dns.ClassINET), dns.RcodeRefused, ""},
		"of another class": {other(dns.TypeSOA, dns.ClassCHAOS), dns.RcodeRefused, ""},
		"of the root":      {notify("."), dns.RcodeRefused, ""},
	}
	for name, c := range cases {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				client := dns.Client{Net: network, Timeout: 5 * time.Second}
				reply, _, err := client.Exchange(c.message, s.NoticeAddr().String())
				if err != nil || reply.Rcode != c.rcode {
					t.Fatalf("answer %v, %v", reply, err)
				}
				if c.want == "" {
					return
				}
				for n := sub.next(t); text(n) != c.want; n = sub.next(t) {
					if n.Zone != "known.example" { // named tells of it by itself
						t.Fatalf("heard %+v", n)
					}
				}
			})
		}
	}
	for len(sub.notices) > 0 {
		if n := <-sub.notices; n.Zone != "known.example" {
			t.Errorf("heard more: %+v", n)
		}
	}
}

// TestNoticesSlowReader: one who does not read holds up nobody, and gets the latest serial once he does.
func TestNoticesSlowReader(t *testing.T) {
	for name, c := range map[string]struct {
		limit int
		lost  bool
	}{"within bounds": {100, false}, "too far behind": {5, true}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{})
			s.stop()
			s.run(t, func(s *server) { s.notifications.Log = notify.NewLog(c.limit) })
			quick := s.subscribe(t)
			released, heard := make(chan struct{}), atomic.Int64{}
			done := make(chan string, 1)
			opened := make(chan struct{})
			go func() {
				first := true
				lost := false
				_ = s.client.ReadNotifications(testContext(t), s.addr, func(n bindcar.Notification) {
					if first {
						first = false
						close(opened)
						<-released
						return
					}
					heard.Add(1)
					if lost = lost || n.Lost; n.Zone == "last.example" || n.Lost == c.lost && c.lost {
						done <- fmt.Sprint("lost: ", lost)
					}
				})
			}()
			<-opened
			// Far more than the buffers of a connection hold.
			const rounds, zones = 4000, 20
			for i := range uint32(rounds) {
				for z := range zones {
					s.server.notifications.Log.Add(bindcar.Notification{Zone: fmt.Sprintf("%s%d.example", strings.Repeat("long-", 12), z), Serial: &i})
				}
			}
			s.server.notifications.Log.Add(bindcar.Notification{Zone: "last.example", Serial: new(uint32(1))})
			for n := quick.next(t); n.Zone != "last.example" && !n.Lost; n = quick.next(t) {
				continue
			}
			close(released)
			select {
			case got := <-done:
				if want := fmt.Sprint("lost: ", c.lost); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			case <-time.After(time.Minute):
				t.Fatal("the slow reader never hears the end")
			}
			if heard.Load() > rounds*zones/2 {
				t.Errorf("the slow reader was sent %d of %d notices", heard.Load(), rounds*zones)
			}
			t.Logf("the slow reader heard %d of %d", heard.Load(), rounds*zones)
		})
	}
}

func TestNoticesRefused(t *testing.T) {
	s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{})
	answering := func(code int) bindcar.Address {
		web := serve(t, s.authority, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(web.Close)
		return serverAt(web.URL)
	}
	cases := map[string]struct {
		client       *bindcar.Client
		addr         bindcar.Address
		code         int
		reason       string
		notSupported bool
	}{
		"no certificate":    {withCertificate(t, s.authority, nil), s.addr, 0, status.BindcarAuthFailed, false},
		"an instance's":     {withCertificate(t, s.authority, mtls.Instance(t, s.authority, "a", "b")), s.addr, 0, status.BindcarAuthFailed, false},
		"a stranger's":      {s.callAs(t, strangerIdentity), s.addr, 403, status.BindcarAuthFailed, false},
		"an older sidecar":  {s.client, answering(404), 404, status.BindcarNotImplemented, true},
		"another's sidecar": {s.client, answering(501), 501, status.BindcarNotImplemented, true},
		"too many":          {s.client, answering(429), 429, status.BindcarUnreachable, false},
		"an odd answer":     {s.client, answering(204), 204, status.BindcarUnreachable, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.client.ReadNotifications(testContext(t), c.addr, func(n bindcar.Notification) { t.Errorf("heard %+v", n) })
			if e, ok := errors.AsType[*bindcar.Error](err); !ok || e.Code != c.code || e.Reason != c.reason || bindcar.IsNotSupported(err) != c.notSupported {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// TestNoticesEndWithTheCertificate: a stream ends when the certificate of its reader does, whose next one needs another
// certificate.
func TestNoticesEndWithTheCertificate(t *testing.T) {
	s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{})
	leaf, err := s.authority.Signer.Mint(time.Now(), 3*time.Second, certs.Subject{Identity: bindcar.APIServerIdentity})
	if err != nil {
		t.Fatal(err)
	}
	brief := withCertificate(t, s.authority, map[string][]byte{"tls.crt": leaf.CertPEM, "tls.key": leaf.KeyPEM})
	began := false
	err = brief.ReadNotifications(testContext(t), s.addr, func(bindcar.Notification) { began = true })
	if !began || !errors.Is(err, io.EOF) {
		t.Errorf("began: %v, then %v", began, err)
	}
	var e *bindcar.Error
	err = brief.ReadNotifications(testContext(t), s.addr, func(bindcar.Notification) {})
	if !errors.As(err, &e) || e.Reason != status.BindcarAuthFailed || !strings.Contains(e.Details, "expired certificate") {
		t.Errorf("once more: %v", err)
	}
}

// TestConnectionsEndBeforeTheCertificate: a caller whose certificate ends soon is asked to connect again, with a newer one.
func TestConnectionsEndBeforeTheCertificate(t *testing.T) {
	authority := mtls.NewAuthority(t)
	web := serve(t, authority, requireCaller(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), bindcar.ControllerIdentity))
	defer web.Close()
	for life, want := range map[time.Duration]bool{reconnectMargin / 2: true, 2 * reconnectMargin: false} {
		leaf, err := authority.Signer.Mint(time.Now(), life, certs.Subject{Identity: bindcar.ControllerIdentity})
		if err != nil {
			t.Fatal(err)
		}
		data := map[string][]byte{"tls.crt": leaf.CertPEM, "tls.key": leaf.KeyPEM, "ca.crt": authority.Bundle()}
		config, err := certs.ClientConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		response := get(t, config, serverAt(web.URL), http.MethodGet, "/")
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK || response.Close != want {
			t.Errorf("%s before its end: %s, closed: %v", life, response.Status, response.Close)
		}
	}
}

// TestNoticesOutliveTimeouts: the server's limits are for requests; a stream continues, with a heartbeat.
func TestNoticesOutliveTimeouts(t *testing.T) {
	s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{})
	s.stop()
	const timeout, heartbeat = time.Second, 50 * time.Millisecond
	s.run(t, func(srv *server) { srv.notifications.HeartbeatInterval = heartbeat })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	web := newHTTPServer(ctx, s.server.rootHandler())
	web.ReadTimeout, web.WriteTimeout, web.IdleTimeout = timeout, timeout, timeout
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener = newHandshakeListener(listener, tlsConfig(t, s.authority))
	served := make(chan error, 1)
	go func() { served <- serveHTTP(ctx, listener, web) }()
	s.addr.Addr = netip.MustParseAddrPort(listener.Addr().String())
	s.readHeartbeats(t, int(3*timeout/heartbeat))
	sub := s.subscribe(t)
	s.server.notifications.Log.Add(bindcar.Notification{Zone: "a.example", Serial: new(uint32(1))})
	sub.await(t, "a.example", 1)

	// Both ends: the stream ends with the server, and the server does not wait for the stream.
	s.server.closeStreams()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the server waited for its stream: %v", err)
	}
	if err := sub.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// readHeartbeats reads so many lines of one stream.
func (s *sidecar) readHeartbeats(t *testing.T, n int) {
	t.Helper()
	response := s.respond(t, bindcar.ControllerIdentity, http.MethodGet, bindcar.PathPrefix+"/notices")
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for i := range n {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d lines: %v", i, lines.Err())
		}
	}
}

// TestReconcile: a zone that an older sidecar added on this volume is announced once the new one has been at work, with all
// that was changed since, and it is left alone from then on.
func TestReconcile(t *testing.T) {
	const zone = "old.example"
	p, secondary := pair(t, zone)
	other := bindcar.CreateZone{ZoneName: "other.example", ZoneType: bindcar.Secondary, ZoneConfig: bindcar.ZoneConfig{Primaries: []string{p.DNS().String()}}}
	for s, request := range map[*sidecar]bindcar.CreateZone{p: primaryZone("other.example", p.UpdateKey.Name), secondary: other} {
		if err := s.client.CreateZone(testContext(t), s.addr, request); err != nil {
			t.Fatal(err)
		}
		s.stop()
		s.run(t, func(srv *server) { srv.noticeAddress = "" })
		d, err := s.server.zones.LoadDescription(zone)
		if err == nil {
			err = s.server.replaceClause(testContext(t), d, d) // as it would have been added
		}
		if err != nil {
			t.Fatal(err)
		}
		s.stop()
		s.run(t, nil)
	}
	p.update(t, zone, 1)
	eventually(t, func() bool { return serialOf(t, secondary.DNS(), zone) == firstSerial+1 })
	for _, s := range []*sidecar{p, secondary} {
		for _, want := range []int{1, 0} {
			if done, err := s.server.reconcileZones(testContext(t)); err != nil || done != want {
				t.Errorf("repaired %d zones, want %d: %v", done, want, err)
			}
		}
	}
	atPrimary, atSecondary := p.subscribe(t), secondary.subscribe(t)
	p.update(t, zone, 2)
	atPrimary.await(t, zone, firstSerial+2)
	atSecondary.await(t, zone, firstSerial+2)
	for _, name := range []string{"h1", "h2", "www"} {
		if len(ask(t, secondary.DNS(), name+"."+zone, dns.TypeA).Answer) != 1 {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestNoticeAddress: named and nobody else may reach the listener.
func TestNoticeAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		NewOptions().NoticeAddress: true, "[::1]:9954": true, "0.0.0.0:9954": false, ":9954": false, "192.0.2.1:9954": false, "127.0.0.1": false, "127.0.0.1:0": false,
	} {
		o := NewOptions()
		o.NoticeAddress = address
		if err := o.Validate(); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestNoticesForListeners: who may read notices hears of changes, and can do nothing else: neither read a zone nor change
// one.
func TestNoticesForListeners(t *testing.T) {
	const zone = "listen.example"
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	if err := s.client.CreateZone(testContext(t), s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	controller := s.client
	s.client = s.callAs(t, bindcar.APIServerIdentity)
	sub := s.subscribe(t)
	s.update(t, zone, 1)
	sub.await(t, zone, firstSerial+1)
	for _, request := range []string{
		"GET /zones", "POST /zones", "GET /zones/" + zone, "PATCH /zones/" + zone, "DELETE /zones/" + zone, "GET /zones/" + zone + "/status",
		"POST /zones/" + zone + "/retransfer", "POST /zones/" + zone + "/freeze", "GET /server/status", "POST /notices",
	} {
		method, path, _ := strings.Cut(request, " ")
		if code := s.request(t, bindcar.APIServerIdentity, method, path); code != http.StatusForbidden {
			t.Errorf("%s: %d, want that it is forbidden", request, code)
		}
	}
	if _, err := controller.Zone(testContext(t), s.addr, zone); err != nil {
		t.Errorf("the zone, asked for by the controller: %v", err)
	}
}

// request sends a request without a body and returns the status of the response.
func (s *sidecar) request(t *testing.T, identity, method, path string) int {
	t.Helper()
	response := s.respond(t, identity, method, bindcar.PathPrefix+path)
	_ = response.Body.Close()
	return response.StatusCode
}

// respond sends a request without a body and returns the response.
func (s *sidecar) respond(t *testing.T, identity, method, path string) *http.Response {
	t.Helper()
	config, err := mtls.Caller(t, s.authority, identity)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return get(t, config, s.addr, method, path)
}

func get(t *testing.T, config *tls.Config, at bindcar.Address, method, path string) *http.Response {
	t.Helper()
	config.ServerName = "test" + strings.TrimPrefix(bindcar.CertificateName(at.Namespace, at.Instance), "*")
	request, err := http.NewRequestWithContext(testContext(t), method, "https://"+at.Addr.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	connections := &http.Transport{TLSClientConfig: config}
	t.Cleanup(connections.CloseIdleConnections)
	response, err := (&http.Client{Transport: connections}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// hasCode reports whether an error of the client is for a response with the status.
func hasCode(err error, code int) bool {
	var e *bindcar.Error
	return errors.As(err, &e) && e.Code == code
}

// text describes a notification.
func text(n bindcar.Notification) string {
	if n.Lost {
		return "lost"
	}
	if n.Serial == nil {
		return n.Zone + " without serial"
	}
	return fmt.Sprint(n.Zone, " ", *n.Serial)
}

// A zone whose file was edited is announced once more when it is loaded, on the same serial.
func TestReloadedZoneIsAnnouncedAgain(t *testing.T) {
	const zone = "reload.example"
	p, _ := pair(t, zone)
	notices := p.subscribe(t)
	p.update(t, zone, 1)
	notices.await(t, zone, firstSerial+1)
	file := p.server.zones.Files(zone).Content()
	command := func(name string) {
		if _, err := p.client.Command(testContext(t), p.addr, zone, name); err != nil {
			t.Fatal(err)
		}
	}
	command("freeze")
	var text []byte
	eventually(t, func() bool { // named writes the file after it has answered.
		text, _ = os.ReadFile(file)
		return bytes.Contains(text, []byte(strconv.Itoa(firstSerial+1)))
	})
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("192.0.2.9"), []byte("192.0.2.66")), 0o600); err != nil {
		t.Fatal(err)
	}
	command("thaw")
	notices.await(t, zone, firstSerial+1)
}
