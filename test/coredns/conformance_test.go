package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
	"github.com/lockstep-dns/lockstep/test/coredns/servers"
)

func TestMain(m *testing.M) { servers.Run(m) }

// world is a cluster of etcd, a CoreDNS that reads it, and zones.
type world struct {
	etcd    *servers.Etcd
	coreDNS *servers.CoreDNS
	zones   []string
	taken   atomic.Int64
	puts    atomic.Int64
}

func newWorld(t *testing.T, o servers.EtcdOptions, block, more string) *world {
	t.Helper()
	w := &world{etcd: servers.StartEtcd(t, o)}
	for i := range 30 {
		w.zones = append(w.zones, fmt.Sprintf("z%d.test.", i), fmt.Sprintf("%d.2.0.192.in-addr.arpa.", i))
	}
	w.coreDNS = servers.StartCoreDNS(t, w.etcd, w.zones, block, more)
	return w
}

// zone returns one that nobody has used.
func (w *world) zone() string { return w.zones[2*w.taken.Add(1)] }

func (w *world) backend(t *testing.T, change func(*coredns.Options)) *coredns.Backend {
	t.Helper()
	o := coredns.Options{Endpoints: w.etcd.Endpoints, Owner: "team/corp", TLS: w.etcd.TLSConfig(), Timeout: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	b := coredns.New(o)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func (w *world) bench(t *testing.T) hosttest.Bench {
	return hosttest.Bench{
		Backend: w.backend(t, nil),
		Other:   w.backend(t, func(o *coredns.Options) { o.Owner = "other/corp" }),
		Zones:   w.zone,
		Ask:     func(t *testing.T, _ string, key rrset.Key) rrset.RRset { return w.coreDNS.Ask(t, key) },
		PutForeign: func(t *testing.T, _ string, set rrset.RRset) {
			for _, rdata := range set.Rdata {
				w.put(t, fmt.Sprintf("%s/x%d", pathOf(set.Name), w.puts.Add(1)), fmt.Sprintf(`{"host":%q,"ttl":%d}`, rdata, set.TTL))
			}
		},
		Damage: w.damage,
		Restart: func(t *testing.T, meanwhile func()) {
			w.etcd.Restart(meanwhile)
			w.coreDNS.AwaitReady(t, w.zones[0])
		},
		LoseReplies: func(t *testing.T) (host.Backend, func(), func()) {
			proxy := newProxy(t, strings.TrimPrefix(w.etcd.Endpoints[0], "http://"))
			b := w.backend(t, func(o *coredns.Options) {
				o.Endpoints, o.Timeout = []string{"http://" + proxy.address}, 3*time.Second
			})
			return b, func() { proxy.lose.Store(true) }, func() { proxy.lose.Store(false); proxy.cut() }
		},
		WrongKey: func(t *testing.T) host.Backend {
			guarded := &world{etcd: servers.StartEtcd(t, servers.EtcdOptions{})}
			guarded.etcd.EnableAuth("lockstep", "secret", "/skydns/")
			return guarded.backend(t, func(o *coredns.Options) { o.Username, o.Password = "lockstep", "wrong" })
		},
	}
}

func pathOf(name string) string {
	labels := dns.SplitDomainName(name)
	slices.Reverse(labels)
	return "/skydns/" + strings.Join(labels, "/")
}

func (w *world) put(t *testing.T, key, raw string) {
	t.Helper()
	if _, err := w.etcd.Client.Put(t.Context(), key, raw); err != nil {
		t.Fatal(err)
	}
}

// keys returns the keys below a path, with what they hold.
func (w *world) keys(t *testing.T, path string) map[string]string {
	t.Helper()
	reply, err := w.etcd.Client.Get(t.Context(), path, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, kv := range reply.Kvs {
		keys[string(kv.Key)] = string(kv.Value)
	}
	return keys
}

// damage deletes one of the values of an RRset.
func (w *world) damage(t *testing.T, zone string, set rrset.RRset) {
	t.Helper()
	path := pathOf(set.Name)
	if set.Name == zone {
		path += "/dns/apex"
	}
	for key, raw := range w.keys(t, path) {
		var v struct{ Lockstep struct{ Type string } }
		if json.Unmarshal([]byte(raw), &v) == nil && v.Lockstep.Type == dns.Type(set.Type).String() {
			if _, err := w.etcd.Client.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no value", set)
}

// proxy forwards connections, and loses what comes back on demand.
type proxy struct {
	address string
	lose    atomic.Bool
	conns   chan net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0") // The servers' certificates are not for it.
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), conns: make(chan net.Conn, 100)}
	t.Cleanup(func() { _ = listener.Close(); p.cut() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.conns <- client
			p.conns <- server
			go func() { _, _ = io.Copy(server, client) }()
			go func() { _, _ = io.Copy(lossy{client, &p.lose}, server) }()
		}
	}()
	return p
}

// cut closes all connections.
func (p *proxy) cut() {
	for {
		select {
		case conn := <-p.conns:
			_ = conn.Close()
		default:
			return
		}
	}
}

type lossy struct {
	io.Writer
	lose *atomic.Bool
}

func (l lossy) Write(b []byte) (int, error) {
	if l.lose.Load() {
		return len(b), nil
	}
	return l.Writer.Write(b)
}

// TestBackend demands that the table in the reference says what CoreDNS with etcd does.
func TestBackend(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	found := hosttest.Run(t, w.bench(t))
	hosttest.CheckTable(t, "../../docs/reference/providers.md", map[string]hosttest.Column{"CoreDNS with etcd": found})
}

func TestBackendRestart(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	hosttest.RunRestart(t, w.bench(t))
}

// TestReverseZone: PTR records beside each other, as reverse zones have them.
func TestReverseZone(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	p := w.bench(t)
	zone := w.zones[1]
	want := hosttest.MapOf()
	for i := range 5 {
		key := rrset.Key{Name: fmt.Sprintf("%d.%s", i, zone), Type: dns.TypePTR}
		want[key] = rrset.New(key, 60, fmt.Sprintf("h%d.z0.test.", i))
	}
	if refused, _, err := hosttest.Sync(t.Context(), p.Backend, zone, want); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	for key, set := range want {
		if got := w.coreDNS.Ask(t, key); !got.Equal(set) {
			t.Errorf("answered %s, want %s", got, set)
		}
	}
}

// TestLargeRRset: one that is more than a transaction may have is replaced, and answered at every moment.
func TestLargeRRset(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	b, zone := w.backend(t, nil), w.zone()
	large := func(third int) rrset.RRset {
		var addresses []string
		for i := range 250 {
			addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", third, i))
		}
		return rrset.New(rrset.Key{Name: "large." + zone, Type: dns.TypeA}, 60, addresses...)
	}
	stop, asked := make(chan struct{}), make(chan struct{})
	for third := range 3 {
		want := large(third)
		if refused, _, err := hosttest.Sync(t.Context(), b, zone, hosttest.MapOf(want)); err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
		if got := w.coreDNS.Ask(t, want.Key); !got.Equal(want) {
			t.Errorf("answered %d addresses", len(got.Rdata))
		}
		if third > 0 {
			continue
		}
		go func() {
			defer close(asked)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := w.coreDNS.Ask(t, want.Key); len(got.Rdata) < 250 {
					t.Errorf("in between %d addresses are answered", len(got.Rdata))
				}
			}
		}()
	}
	close(stop)
	<-asked
}

// TestAlias: whoever asks for the address of an alias gets it, also where there are names below the alias.
func TestAlias(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	b, zone := w.backend(t, nil), w.zone()
	set := func(name, rdata string, rrtype uint16) rrset.RRset {
		return rrset.New(rrset.Key{Name: name + "." + zone, Type: rrtype}, 60, rdata)
	}
	target := set("web", "192.0.2.1", dns.TypeA)
	want := hosttest.MapOf(target, set("www", target.Name, dns.TypeCNAME), set("x.www", "192.0.2.2", dns.TypeA), set("_acme-challenge.www", `"x"`, dns.TypeTXT))
	if refused, _, err := hosttest.Sync(t.Context(), b, zone, want); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	reply, err := w.coreDNS.Exchange("www."+zone, dns.TypeA)
	if err != nil || len(reply.Answer) != 2 || reply.Answer[0].Header().Rrtype != dns.TypeCNAME || reply.Answer[1].Header().Name != target.Name {
		t.Errorf("%v, error %v", reply, err)
	}
}

// TestModel: what the package predicts of any values, of others and broken ones too, is what CoreDNS answers.
func TestModel(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	b := w.backend(t, nil)
	for name, tc := range map[string]struct {
		values map[string]string
	}{
		"exact key":           {map[string]string{"/www": `{"host":"192.0.2.1","ttl":60}`}},
		"two values":          {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60}`, "/www/b": `{"host":"192.0.2.2","ttl":60}`}},
		"TTLs that differ":    {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60}`, "/www/b": `{"host":"192.0.2.2"}`}},
		"below each other":    {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60}`, "/www/b/c": `{"host":"192.0.2.2","ttl":60}`}},
		"groups":              {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60,"group":"g"}`, "/www/b/c": `{"host":"192.0.2.2","ttl":60,"group":"h"}`}},
		"groups at one level": {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60,"group":"g"}`, "/www/b": `{"host":"192.0.2.2","ttl":60,"group":"h"}`}},
		"no JSON":             {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60}`, "/www/b": `{`}},
		"a string as TTL":     {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":"60"}`}},
		"text and host":       {map[string]string{"/www/a": `{"host":"192.0.2.1","text":"x","ttl":60}`, "/www/b": `{"text":"y","ttl":60}`}},
		"alias beside":        {map[string]string{"/www/a": `{"host":"192.0.2.1","ttl":60}`, "/www/b": `{"host":"mail.elsewhere.test.","ttl":60}`}},
		"mail":                {map[string]string{"/www/a": `{"host":"m.elsewhere.test","mail":true,"ttl":60}`, "/www/b": `{"host":"n.elsewhere.test.","mail":true,"priority":5,"ttl":60}`}},
		"services":            {map[string]string{"/www/a": `{"host":"m.elsewhere.test","port":80,"ttl":60}`, "/www/b": `{"host":"n.elsewhere.test.","port":81,"weight":20,"ttl":60}`}},
		"long text":           {map[string]string{"/www/a": fmt.Sprintf(`{"text":%q,"ttl":60}`, strings.Repeat("x", 255)), "/www/b": fmt.Sprintf(`{"text":%q,"ttl":60}`, strings.Repeat("y", 600))}},
		"alias":               {map[string]string{"/www": `{"host":"m.elsewhere.test","ttl":60}`}},
		"apex":                {map[string]string{"/dns/apex/a": `{"host":"192.0.2.1","ttl":60}`, "/www/b": `{"host":"192.0.2.2","ttl":60}`}},
		"no apex":             {map[string]string{"/www/b": `{"host":"192.0.2.2","ttl":60}`}},
	} {
		t.Run(name, func(t *testing.T) {
			zone := w.zone()
			for key, raw := range tc.values {
				w.put(t, strings.TrimSuffix(pathOf(zone), "/")+key, raw)
			}
			seen, err := b.Observe(t.Context(), zone)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for set := range seen.Content.All() {
				n++
				if got := w.coreDNS.Ask(t, set.Key); !got.Equal(set) {
					t.Errorf("CoreDNS answers %s, predicted %s", got, set)
				}
			}
			if n == 0 && !strings.Contains(name, "JSON") && !strings.Contains(name, "string as") {
				t.Error("nothing seen")
			}
		})
	}
}
