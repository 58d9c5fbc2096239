package sidecar

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// TestKeyRotation takes both keys of a primary and a secondary through every step of a rotation, by nothing but the files
// that the kubelet would change, while a client updates without a pause. Whoever takes a step is killed before and after he
// has written it, and another goes on from what is written. Every update has to succeed with the key that the ring says,
// every one has to arrive at the secondary, and at the end the old keys are worth nothing.
func TestKeyRotation(t *testing.T) {
	const zone = "rotate.example"
	p, s := pair(t, zone)
	ctx := testContext(t)
	both := []*sidecar{p, s}
	rings, sources := map[named.KeyRole]named.Keyring{}, map[named.KeyRole]*wire.Key{}
	old := map[named.KeyRole]*wire.Key{named.KeyUpdate: p.UpdateKey, named.KeyTransfer: p.TransferKey}
	for role, key := range old {
		ring, err := named.NewKeyring(role, key, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := named.NewKey("test", "server", role) // under the same name
		if err != nil {
			t.Fatal(err)
		}
		rings[role], sources[role] = ring, fresh
	}
	load := startLoad(t, p, zone, *p.UpdateKey)
	now := time.Now()
	for _, step := range []string{"accept", "switch", "drop"} {
		for role, ring := range rings {
			signing, loaded := true, true
			facts := named.KeyFacts{
				Loaded: func(name string) bool {
					for _, server := range serversOf(role, p, s) {
						keys, err := server.client.Keys(ctx, server.addr)
						loaded = loaded && err == nil && slices.Contains(keys.Loaded[string(role)], name)
					}
					return loaded
				},
				Signing: func(name string) bool {
					for _, server := range both {
						keys, err := server.client.Keys(ctx, server.addr)
						signing = signing && (role == named.KeyUpdate || err == nil && keys.Signing == name)
					}
					return signing
				},
			}
			if _, changed, err := ring.Follow(role, sources[role], facts, now); err != nil || !changed {
				t.Fatalf("%s of %s, before it is written: changed %v, %v", step, role, changed, err)
			}
			next, changed, err := reread(t, role, ring).Follow(role, sources[role], facts, now)
			if err != nil || !changed {
				t.Fatalf("%s of %s: changed %v, %v", step, role, changed, err)
			}
			next = reread(t, role, next)
			if _, changed, err := next.Follow(role, sources[role], facts, now); err != nil || changed {
				t.Fatalf("%s of %s, before servers have it: changed %v, %v", step, role, changed, err)
			}
			rings[role] = next
			for _, server := range serversOf(role, p, s) {
				server.WriteKeyring(t, role, next)
				if keys, err := server.client.Keys(ctx, server.addr); err != nil || keys.Loaded[string(role)] != nil {
					t.Errorf("%s of %s: before it was told to, named has loaded %v, %v", step, role, keys, err)
				}
				if err := server.server.reconcile(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if role == named.KeyUpdate {
				load.use(*next.Active())
			}
		}
		load.more(50)
		now = now.Add(2 * named.KeyGrace)
	}
	count := load.stop()
	t.Logf("%d updates during the rotation", count)
	eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == firstSerial+uint32(count) })
	for _, server := range both {
		keys, err := server.client.Keys(ctx, server.addr)
		if ring := rings[named.KeyTransfer]; err != nil || keys.Signing != ring.Active().Name || len(keys.Loaded["transfer"]) != 1 {
			t.Errorf("in the end: %+v, %v", keys, err)
		}
	}
	if rcode := updateWith(t, p.Pod, zone, "stale", old[named.KeyUpdate]); rcode != dns.RcodeNotAuth {
		t.Errorf("an update with the old key was answered %s", dns.RcodeToString[rcode])
	}
	for _, server := range both {
		for key, ok := range map[*wire.Key]bool{old[named.KeyTransfer]: false, sources[named.KeyTransfer]: true, rings[named.KeyTransfer].Active(): true} {
			if _, err := wire.Transfer(ctx, server.DNS(), dns.Fqdn(zone), nil, key); (err == nil) != ok {
				t.Errorf("a transfer with key %s: %v", key, err)
			}
		}
	}
	if rcode := updateWith(t, p.Pod, zone, "given", sources[named.KeyUpdate]); rcode != dns.RcodeSuccess {
		t.Errorf("an update with the key as it was given was answered %s", dns.RcodeToString[rcode])
	}
}

// reread is a ring as its Secret gives it to a controller that was started after it was written.
func reread(t *testing.T, role named.KeyRole, ring named.Keyring) named.Keyring {
	t.Helper()
	data, err := ring.Data(role)
	if err != nil {
		t.Fatal(err)
	}
	again, err := named.KeyringFromSecret(&corev1.Secret{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// serversOf are those that have keys of the role.
func serversOf(role named.KeyRole, primary, secondary *sidecar) []*sidecar {
	if role == named.KeyUpdate {
		return []*sidecar{primary}
	}
	return []*sidecar{primary, secondary}
}

func updateWith(t testing.TB, server *namedtest.Pod, zone, host string, key *wire.Key) int {
	t.Helper()
	m := new(dns.Msg).SetUpdate(dns.Fqdn(zone))
	m.Insert([]dns.RR{&dns.A{
		Hdr: dns.RR_Header{Name: host + "." + dns.Fqdn(zone), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 9),
	}})
	conn, err := wire.Dial(testContext(t), server.DNS(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	reply, err := conn.Exchange(testContext(t), m)
	if reply == nil {
		t.Logf("update with key %s: %v", key, err)
		return dns.RcodeNotAuth
	}
	return reply.Rcode
}

// load is a client that updates without a pause.
type load struct {
	mu   sync.Mutex
	key  wire.Key
	sent int
	quit chan struct{}
	done chan struct{}
}

func startLoad(t *testing.T, server *sidecar, zone string, key wire.Key) *load {
	l := &load{key: key, quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for n := 0; ; n++ {
			select {
			case <-l.quit:
				return
			default:
			}
			l.mu.Lock()
			key := l.key
			l.mu.Unlock()
			if rcode := updateWith(t, server.Pod, zone, fmt.Sprint("load", n), &key); rcode != dns.RcodeSuccess {
				t.Errorf("update %d with key %s was answered %s", n, key, dns.RcodeToString[rcode])
			}
			l.mu.Lock()
			l.sent++
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *load) use(key wire.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key = key
}

// more waits until so many more updates were answered.
func (l *load) more(n int) {
	l.mu.Lock()
	until := l.sent + n
	l.mu.Unlock()
	for {
		l.mu.Lock()
		sent := l.sent
		l.mu.Unlock()
		if sent >= until {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *load) stop() int {
	close(l.quit)
	<-l.done
	return l.sent
}
