package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/mtls"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// strangerIdentity is one that no sidecar knows.
const strangerIdentity = "spiffe://lockstep.internal/stranger"

// sidecar is a server beside a real named, and a client of it.
type sidecar struct {
	*namedtest.Pod
	addr      bindcar.Address
	authority certs.State
	client    *bindcar.Client
	server    *server
	// stop ends the server, in the order in which it ends in a pod.
	stop func()
}

func start(t testing.TB, role v1beta1.ServerRole, keys [2]*wire.Key) *sidecar {
	t.Helper()
	return startBeside(t, namedtest.StartPod(t, role, keys, nil))
}

func startBeside(t testing.TB, pod *namedtest.Pod) *sidecar {
	t.Helper()
	s := &sidecar{Pod: pod, authority: mtls.NewAuthority(t)}
	s.client = s.callAs(t, bindcar.ControllerIdentity)
	s.run(t, nil)
	t.Cleanup(func() { s.stop() })
	return s
}

// callAs returns a client with an identity of our authority.
func (s *sidecar) callAs(t testing.TB, identity string) *bindcar.Client {
	t.Helper()
	return mtls.Client(t, s.authority, identity)
}

// run starts the server; adjust may change it before it serves.
func (s *sidecar) run(t testing.TB, adjust func(*server)) {
	t.Helper()
	var err error
	s.server, err = newServer(Options{
		RNDCAddress: s.ControlAddr(), RNDCKeyFile: s.Layout.ControlKeyFile, StatisticsURL: s.StatisticsURL(), NoticeAddress: s.NoticeAddr().String(),
		ZonesDir: s.Layout.ZonesDir, KeyNamesDir: s.Layout.KeyDir, DNSPort: int(s.DNS().Port()),
		RequestRate: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	if adjust != nil {
		adjust(s.server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := s.server.listenForNotify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- listener.Serve(ctx) }()
	web := serve(t, s.authority, s.server.rootHandler())
	s.addr = serverAt(web.URL)
	s.stop = sync.OnceFunc(func() {
		s.server.close()
		web.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("listening for NOTIFY: %v", err)
		}
	})
}

// serverAt is the sidecar of an instance that listens at a URL without a path.
func serverAt(url string) bindcar.Address {
	_, address, _ := strings.Cut(url, "://")
	return bindcar.Address{Addr: netip.MustParseAddrPort(address), Namespace: "dns", Instance: "dns-primary-0"}
}

// serve serves a handler as a sidecar does, to callers whom the authority has issued a certificate.
func serve(t testing.TB, authority certs.State, handler http.Handler) *httptest.Server {
	t.Helper()
	web := httptest.NewUnstartedServer(handler)
	web.Listener = newHandshakeListener(web.Listener, tlsConfig(t, authority))
	web.Start()
	return web
}

// tlsConfig returns what a sidecar serves with.
func tlsConfig(t testing.TB, authority certs.State) *tls.Config {
	t.Helper()
	dir := t.TempDir()
	mtls.WriteFiles(t, dir, mtls.Instance(t, authority, "dns", "dns-primary-0"))
	config, err := optionsIn(dir).tlsConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// optionsIn returns options with the certificate files of a directory.
func optionsIn(dir string) *Options {
	o := NewOptions()
	o.TLSCertFile, o.TLSKeyFile, o.ClientCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	return o
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func primaryZone(zone, key string) bindcar.CreateZone {
	name := strings.TrimSuffix(zone, ".")
	return bindcar.CreateZone{
		ZoneName: zone, ZoneType: bindcar.Primary, UpdateKeyName: key,
		ZoneConfig: bindcar.ZoneConfig{
			TTL: 300,
			SOA: &bindcar.SOA{PrimaryNS: "ns1." + name + ".", AdminEmail: "host.master@" + name, Serial: 1763690000,
				Refresh: 3600, Retry: 600, Expire: 604800, NegativeTTL: 60},
			Records: []bindcar.Record{
				{Name: "@", Type: "NS", Value: "ns1"}, {Name: "ns1", Type: "A", Value: "192.0.2.53"},
				{Name: "www", Type: "A", Value: "192.0.2.1"},
				{Name: "@", Type: "TXT", Value: `"v=spf1 -all"`},
				{Name: "@", Type: "MX", Value: "mail.example.", Priority: new(uint16)},
			},
		},
	}
}

func ask(t testing.TB, server netip.AddrPort, name string, qtype uint16) *dns.Msg {
	t.Helper()
	reply, err := wire.Query(testContext(t), server, dns.Fqdn(name), qtype)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Msg
}

func serialOf(t testing.TB, server netip.AddrPort, zone string) uint32 {
	t.Helper()
	for _, rr := range ask(t, server, zone, dns.TypeSOA).Answer {
		if soa, ok := rr.(*dns.SOA); ok {
			return soa.Serial
		}
	}
	return 0
}

func TestZoneLifeCycle(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	ctx := testContext(t)

	// A journal of an earlier zone of that name must not find its way into the new one.
	stale := filepath.Join(s.Layout.ZonesDir, "life.example.zone.jnl")
	if err := os.WriteFile(stale, []byte("not a journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	request := primaryZone("Life.Example.", s.UpdateKey.Name)
	request.Owner, request.OwnerUID = "team/zone", "uid"
	if err := s.client.CreateZone(ctx, s.addr, request); err != nil {
		t.Fatal(err)
	}
	if got := serialOf(t, s.DNS(), "life.example"); got != 1763690000 {
		t.Errorf("serial %d", got)
	}
	if answer := ask(t, s.DNS(), "www.life.example", dns.TypeA).Answer; len(answer) != 1 || !strings.Contains(answer[0].String(), "192.0.2.1") {
		t.Errorf("answer %v", answer)
	}
	soa := ask(t, s.DNS(), "life.example", dns.TypeSOA).Answer[0].(*dns.SOA)
	if soa.Mbox != `host\.master.life.example.` {
		t.Errorf("mailbox %s", soa.Mbox)
	}

	if err := s.client.CreateZone(ctx, s.addr, request); !bindcar.IsExists(err) {
		t.Errorf("creating it twice: %v", err)
	}
	if got := serialOf(t, s.DNS(), "life.example"); got != 1763690000 {
		t.Errorf("serial after the second attempt: %d", got)
	}

	list, err := s.client.Zones(ctx, s.addr)
	if err != nil || list.Count != 1 || list.Items[0].Name != "life.example" || !list.Items[0].Added ||
		list.Items[0].Serial == nil || *list.Items[0].Serial != 1763690000 || list.Items[0].Type != bindcar.Primary {
		t.Errorf("list %+v, %v", list, err)
	}
	if zone, err := s.client.Zone(ctx, s.addr, "life.example"); err != nil || zone.Name != "life.example" || zone.Owner != "team/zone" || zone.OwnerUID != "uid" {
		t.Errorf("zone %+v, %v", zone, err)
	}

	update := &dns.Msg{}
	update.SetUpdate("life.example.")
	rr, _ := dns.NewRR("new.life.example. 60 IN A 192.0.2.9")
	update.Insert([]dns.RR{rr})
	conn, err := wire.Dial(ctx, s.DNS(), s.UpdateKey)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if reply, err := conn.Exchange(ctx, update); err != nil || reply.Rcode != dns.RcodeSuccess {
		t.Errorf("update: %v, %v", reply, err)
	}

	for _, other := range []bindcar.Owner{{Name: "evil/zone", UID: "uid of evil"}, {Name: "evil/zone"}, {Name: "team/zone", UID: "that of the one before"}} {
		if err := s.client.DeleteZone(ctx, s.addr, "life.example", other); !bindcar.IsNotFound(err) {
			t.Errorf("another DNSZone, %v, deletes it: %v", other, err)
		}
	}
	if rcode := ask(t, s.DNS(), "life.example", dns.TypeSOA).Rcode; rcode != dns.RcodeSuccess {
		t.Errorf("rcode after another DNSZone's deletion: %s", dns.RcodeToString[rcode])
	}
	if err := s.client.DeleteZone(ctx, s.addr, "life.example", bindcar.Owner{Name: "team/zone", UID: "uid"}); err != nil {
		t.Fatal(err)
	}
	if rcode := ask(t, s.DNS(), "life.example", dns.TypeSOA).Rcode; rcode != dns.RcodeRefused {
		t.Errorf("rcode after deletion: %s", dns.RcodeToString[rcode])
	}
	left, _ := filepath.Glob(filepath.Join(s.Layout.ZonesDir, "life.example*"))
	if len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
	if err := s.client.DeleteZone(ctx, s.addr, "life.example", bindcar.Owner{}); !bindcar.IsNotFound(err) {
		t.Errorf("deleting it twice: %v", err)
	}
	if _, err := s.client.Zone(ctx, s.addr, "life.example"); !bindcar.IsNotFound(err) {
		t.Errorf("asking for a deleted zone: %v", err)
	}
}

func TestCreateRefusals(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	good := func() bindcar.CreateZone { return primaryZone("good.example", s.UpdateKey.Name) }
	cases := map[string]struct {
		change func(*bindcar.CreateZone)
		field  string
	}{
		"empty name":         {func(z *bindcar.CreateZone) { z.ZoneName = "" }, "zoneName"},
		"root":               {func(z *bindcar.CreateZone) { z.ZoneName = "." }, "zoneName"},
		"path traversal":     {func(z *bindcar.CreateZone) { z.ZoneName = "../../etc/passwd" }, "zoneName"},
		"quote in name":      {func(z *bindcar.CreateZone) { z.ZoneName = `a"b.example` }, "zoneName"},
		"escape in name":     {func(z *bindcar.CreateZone) { z.ZoneName = `a\032b.example` }, "zoneName"},
		"long label":         {func(z *bindcar.CreateZone) { z.ZoneName = strings.Repeat("a", 64) + ".example" }, "zoneName"},
		"type":               {func(z *bindcar.CreateZone) { z.ZoneType = "hint" }, "zoneType"},
		"unknown key":        {func(z *bindcar.CreateZone) { z.UpdateKeyName = "nobody." }, "updateKeyName"},
		"no soa":             {func(z *bindcar.CreateZone) { z.ZoneConfig.SOA = nil }, "zoneConfig.soa"},
		"soa mname":          {func(z *bindcar.CreateZone) { z.ZoneConfig.SOA.PrimaryNS = "" }, "zoneConfig.soa.primaryNs"},
		"record type":        {func(z *bindcar.CreateZone) { z.ZoneConfig.Records[2].Type = "SOA" }, "zoneConfig.records[2]"},
		"record value":       {func(z *bindcar.CreateZone) { z.ZoneConfig.Records[2].Value = "300.1.1.1" }, "zoneConfig.records[2]"},
		"second line":        {func(z *bindcar.CreateZone) { z.ZoneConfig.Records[2].Value = "192.0.2.1\n$INCLUDE /etc/passwd" }, "zoneConfig.records[2]"},
		"outside":            {func(z *bindcar.CreateZone) { z.ZoneConfig.Records[2].Name = "www.other.example." }, "zoneConfig.records[2]"},
		"ttl":                {func(z *bindcar.CreateZone) { z.ZoneConfig.Records[2].TTL = ptrTo(uint32(1 << 31)) }, "zoneConfig.records[2]"},
		"also-notify":        {func(z *bindcar.CreateZone) { z.ZoneConfig.AlsoNotify = []string{"host.example"} }, "zoneConfig.alsoNotify"},
		"allow-transfer":     {func(z *bindcar.CreateZone) { z.ZoneConfig.AllowTransfer = []string{"any; }; evil {"} }, "zoneConfig.allowTransfer"},
		"secondary of none":  {func(z *bindcar.CreateZone) { z.ZoneType = bindcar.Secondary }, "zoneConfig.primaries"},
		"dnssec-policy":      {func(z *bindcar.CreateZone) { z.ZoneConfig.DNSSECPolicy = `x"; }` }, "zoneConfig.dnssecPolicy"},
		"content of no zone": {func(z *bindcar.CreateZone) { z.ZoneConfig.Records = z.ZoneConfig.Records[:1] }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			zone := good()
			c.change(&zone)
			err := s.client.CreateZone(testContext(t), s.addr, zone)
			if e, ok := errors.AsType[*bindcar.Error](err); !ok || e.Code != http.StatusBadRequest || e.Reason != status.BindcarBadRequest || !strings.Contains(e.Details, c.field) {
				t.Errorf("got %#v", err)
			} else {
				t.Log(e)
			}
		})
	}
	left, _ := filepath.Glob(filepath.Join(s.Layout.ZonesDir, "*.zone"))
	if len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
	if err := s.client.CreateZone(testContext(t), s.addr, good()); err != nil {
		t.Errorf("the good zone: %v", err)
	}
}

func ptrTo[T any](v T) *T { return &v }

// TestAuthentication: nobody gets past the handshake without a certificate for clients of our authority, and then each caller
// may do what its name says.
func TestAuthentication(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	const refused, served = 0, http.StatusOK
	cases := map[string]struct {
		client *bindcar.Client
		code   int
	}{
		"no certificate":          {withCertificate(t, s.authority, nil), refused},
		"another authority's":     {withCertificate(t, s.authority, credentialsOf(t, mtls.NewAuthority(t), certs.Subject{Identity: bindcar.ControllerIdentity})), refused},
		"an instance's":           {withCertificate(t, s.authority, mtls.Instance(t, s.authority, "evil", "evil-primary-0")), refused},
		"this very instance's":    {withCertificate(t, s.authority, mtls.Instance(t, s.authority, "dns", "dns-primary-0")), refused},
		"a stranger's":            {s.callAs(t, strangerIdentity), http.StatusForbidden},
		"one that reads notices":  {s.callAs(t, bindcar.APIServerIdentity), http.StatusForbidden},
		"one that reads counters": {s.callAs(t, bindcar.MetricsIdentity), http.StatusForbidden},
		"the controller":          {s.client, served},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.client.Zones(testContext(t), s.addr)
			var e *bindcar.Error
			switch {
			case c.code == served && err != nil:
				t.Error(err)
			case c.code != served && (!errors.As(err, &e) || e.Code != c.code || e.Reason != status.BindcarAuthFailed):
				t.Errorf("got %v, want %d", err, c.code)
			}
		})
	}
	for identity, ok := range map[string]bool{
		bindcar.ControllerIdentity: true, bindcar.APIServerIdentity: true, bindcar.MetricsIdentity: true, strangerIdentity: false,
	} {
		if err := s.callAs(t, identity).Ready(testContext(t), s.addr); (err == nil) != ok {
			t.Errorf("readiness for %s: %v", identity, err)
		}
	}
}

// withCertificate returns a client that has the certificate of a Secret's data, or none, and trusts an authority.
func withCertificate(t *testing.T, trusted certs.State, data map[string][]byte) *bindcar.Client {
	t.Helper()
	return bindcar.NewClient(bindcar.ClientOptions{TLS: mtls.WithCertificate(mtls.Caller(t, trusted, bindcar.ControllerIdentity), data)})
}

func credentialsOf(t *testing.T, authority certs.State, subject certs.Subject) map[string][]byte {
	t.Helper()
	data, err := authority.Issue(time.Now(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestHealth: the kubelet, which has no certificate, reads health and readiness, and nothing else is there.
func TestHealth(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	web := httptest.NewServer(s.server.healthHandler())
	defer web.Close()
	get := func(path string) int {
		response, err := http.Get(web.URL + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	for path, want := range map[string]int{
		bindcar.PathPrefix + "/health": http.StatusOK, bindcar.PathPrefix + "/ready": http.StatusOK,
		bindcar.PathPrefix + "/zones": http.StatusNotFound, bindcar.PathPrefix + "/notices": http.StatusNotFound,
		bindcar.PathPrefix + "/statistics": http.StatusNotFound, "/metrics": http.StatusNotFound,
	} {
		if got := get(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	s.Stop()
	eventually(t, func() bool { return get(bindcar.PathPrefix+"/ready") == http.StatusServiceUnavailable })
}

// TestReadinessIsShared: asking often costs named little.
func TestReadinessIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := &readiness{ask: func(context.Context) (string, error) { asked++; return "", nil }}
		for range 1000 {
			if _, err := r.check(); err != nil {
				t.Fatal(err)
			}
		}
		if asked != 1 {
			t.Errorf("named was asked %d times", asked)
		}
		time.Sleep(readinessAge)
		if _, _ = r.check(); asked != 2 {
			t.Errorf("named was asked %d times", asked)
		}
	})
}

func TestSecondaryFollows(t *testing.T) {
	p := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{p.UpdateKey, p.TransferKey})
	ctx := testContext(t)
	zone := primaryZone("pair.example", p.UpdateKey.Name)
	zone.ZoneConfig.AlsoNotify = []string{s.DNS().String()}
	if err := p.client.CreateZone(ctx, p.addr, zone); err != nil {
		t.Fatal(err)
	}
	wrong := bindcar.CreateZone{ZoneName: "pair.example", ZoneType: bindcar.Secondary, ZoneConfig: bindcar.ZoneConfig{Primaries: []string{"127.0.0.1:1"}}}
	if err := s.client.CreateZone(ctx, s.addr, wrong); err != nil {
		t.Fatal(err)
	}
	if got, err := s.client.Zone(ctx, s.addr, "pair.example"); err != nil || got.Serial != nil || got.Type != bindcar.Secondary {
		t.Errorf("a secondary without data: %+v, %v", got, err)
	}
	if err := s.client.PatchZone(ctx, s.addr, "pair.example", bindcar.PatchZone{Primaries: &[]string{p.DNS().String()}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return serialOf(t, s.DNS(), "pair.example") == 1763690000 })

	update := &dns.Msg{}
	update.SetUpdate("pair.example.")
	rr, _ := dns.NewRR("new.pair.example. 60 IN A 192.0.2.9")
	update.Insert([]dns.RR{rr})
	conn, err := wire.Dial(ctx, p.DNS(), p.UpdateKey)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	began := time.Now()
	if _, err := conn.Exchange(ctx, update); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(ask(t, s.DNS(), "new.pair.example", dns.TypeA).Answer) == 1 })
	t.Logf("a change took %v to reach the secondary", time.Since(began))

	// From now on the primary must not tell the secondary; modzone has to change the running zone.
	if err := p.client.PatchZone(ctx, p.addr, "pair.example", bindcar.PatchZone{AlsoNotify: &[]string{}}); err != nil {
		t.Fatal(err)
	}
	sub := p.subscribe(t)
	for n := range 2 {
		p.update(t, "pair.example", n)
		sub.await(t, "pair.example", firstSerial+2+uint32(n))
	}
	requireUntold(t, p, s, "pair.example", firstSerial+2)
	if len(ask(t, s.DNS(), "h0.pair.example", dns.TypeA).Answer) != 0 {
		t.Error("the primary still notifies")
	}
	if err := wire.Notify(ctx, s.DNS(), "pair.example.", serialOf(t, p.DNS(), "pair.example"), p.TransferKey); err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { return len(ask(t, s.DNS(), "h1.pair.example", dns.TypeA).Answer) == 1 })
	// Ordered last: a NOTIFY that arrives during a transfer makes named refresh the zone once more, whenever that is over.
	if _, err := s.client.Command(ctx, s.addr, "pair.example", "retransfer"); err != nil {
		t.Error(err)
	}
}

func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("did not happen within a minute")
		}
	}
}
