package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/refresh"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// ear stands where a sidecar does: it takes the NOTIFY messages of one named and passes them on as notices.
type ear struct {
	addr netip.AddrPort

	mu      sync.Mutex
	readers map[chan bindcar.Notification]struct{}
	cut     context.Context
	end     context.CancelFunc
}

func newEar(t *testing.T, key wire.Key) *ear {
	t.Helper()
	e := &ear{readers: map[chan bindcar.Notification]struct{}{}}
	e.cut, e.end = context.WithCancel(context.Background())
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = netip.MustParseAddrPort(conn.LocalAddr().String())
	started := make(chan struct{})
	server := &dns.Server{
		PacketConn: conn, TsigSecret: map[string]string{key.Name: key.Secret}, Handler: dns.HandlerFunc(e.take), NotifyStartedFunc: func() { close(started) },
		MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept },
	}
	go func() { _ = server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { e.end(); _ = server.Shutdown() })
	return e
}

func (e *ear) take(w dns.ResponseWriter, m *dns.Msg) {
	reply := new(dns.Msg).SetReply(m)
	if sig := m.IsTsig(); sig != nil {
		reply.SetTsig(sig.Hdr.Name, sig.Algorithm, 300, time.Now().Unix())
	}
	_ = w.WriteMsg(reply)
	if m.Opcode != dns.OpcodeNotify || len(m.Question) != 1 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for r := range e.readers {
		r <- bindcar.Notification{Zone: strings.ToLower(strings.TrimSuffix(m.Question[0].Name, "."))}
	}
}

// stream is a Notices for one server.
func (e *ear) stream(ctx context.Context, fn func(bindcar.Notification)) error {
	if e.cut.Err() != nil {
		return errors.New("connection refused")
	}
	own := make(chan bindcar.Notification, 10000)
	e.mu.Lock()
	e.readers[own] = struct{}{}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.readers, own)
	}()
	fn(bindcar.Notification{Lost: true})
	for {
		select {
		case n := <-own:
			fn(n)
		case <-ctx.Done():
			return ctx.Err()
		case <-e.cut.Done():
			return errors.New("connection reset")
		}
	}
}

// telling starts a primary and a secondary in sync, each of which is listened to.
func telling(t *testing.T, interval time.Duration, zones ...bind.Zone) (w *world, servers [2]*bind.Server, ears [2]*ear) {
	t.Helper()
	at := map[netip.AddrPort]*ear{}
	w = newWorld(t, func(o *testOptions) {
		o.WatchInterval = interval
		o.Deadline = time.Second
		o.Notifications = func(ctx context.Context, server refresh.Peer, fn func(bindcar.Notification)) error {
			return at[server.Addr].stream(ctx, fn)
		}
	})
	key := w.Key
	ears = [2]*ear{newEar(t, key), newEar(t, key)}
	other := bind.Reserve(t)
	servers[0] = bind.Start(t, bind.Options{Zones: zones, Transfer: key, AlsoNotify: []netip.AddrPort{other, ears[0].addr}})
	servers[1] = bind.Start(t, bind.Options{Role: bind.Secondary, Addr: other, Primary: servers[0], Zones: zones, AlsoNotify: []netip.AddrPort{ears[1].addr}})
	at[servers[0].Addr], at[servers[1].Addr] = ears[0], ears[1]
	w.Server("primary", v1beta1.RolePrimary, servers[0].Addr)
	w.Server("secondary", v1beta1.RoleSecondary, servers[1].Addr)
	return w, servers, ears
}

// listenedTo counts the servers that tell of their changes.
func listenedTo(w *world) int { return int(w.metric("notice_streams")) }

const never = 24 * time.Hour

// What a server tells is in the watch at once: nothing else asks the servers here.
func TestWatchHearsOfChanges(t *testing.T) {
	w, servers, _ := telling(t, never, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	w.Eventually("both servers are listened to", func() bool { return listenedTo(w) == 2 })
	for turn := range 10 {
		wrong := fmt.Sprintf("192.0.2.%d", 10+turn)
		began := time.Now()
		fakekube.Update(t, servers[0], "example.test.", "www.example.test.", wrong)
		events.until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
		first := time.Since(began)
		began = time.Now()
		fakekube.Update(t, servers[0], "example.test.", "www.example.test.", "192.0.2.7")
		events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
		t.Logf("seen on both servers %s and %s after the update was sent", first.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
	events.Stop()
	w.Eventually("nobody listens when nobody watches", func() bool { return listenedTo(w) == 0 })
}

// Servers that tell of changes are asked about a few zones at a time, and all are asked when one of these is not answered.
func TestServersThatTellAreHardlyAsked(t *testing.T) {
	const zones, pollRounds, interval = 40, 20, 100 * time.Millisecond
	var files []bind.Zone
	for i := range zones {
		files = append(files, bind.Zone{Name: fmt.Sprintf("z%d.test.", i), Serial: 10})
	}
	w, servers, _ := telling(t, interval, files...)
	for i := range zones {
		w.Apply(fakekube.Zone(fmt.Sprintf("z%d.test", i), "primary", "secondary"))
	}
	w.Eventually("all zones are known", func() bool { return len(w.list(query{namespace: ns}).Items) >= zones })
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	all := func(state string) {
		t.Helper()
		seen := map[string]bool{}
		for len(seen) < zones {
			if _, s := events.next(); s.ObjectRef.Kind == "DNSZone" && states(s) == state {
				seen[s.Name] = true
			}
		}
	}
	all("InSync primary-0=InSync secondary-0=InSync")
	w.Eventually("both servers are listened to", func() bool { return listenedTo(w) == 2 })
	first := queries(t, servers[0])
	w.Eventually("what was asked at first is answered", func() bool {
		before := first
		first = queries(t, servers[0])
		return first-before <= 2*zones/pollRounds
	})
	began := time.Now()
	w.Eventually("it is asked all the same", func() bool { return queries(t, servers[0]) > first })
	time.Sleep(10 * interval)
	asked := queries(t, servers[0]) - first
	if most := int(time.Since(began)/interval+2)*zones/pollRounds + zones; asked > most {
		t.Errorf("a server that tells of changes was asked %d times in %s, want %d times at the most", asked, time.Since(began), most)
	}
	servers[1].Pause()
	all("OutOfSync primary-0=InSync secondary-0=Unreachable")
	servers[1].Resume()
	all("InSync primary-0=InSync secondary-0=InSync")
}

// Tools watch everything all day. What a server that tells of changes is asked then does not grow with the namespaces whose zones it has, and
// each of them learns when it falls silent.
func TestWatchOfManyNamespacesHardlyAsks(t *testing.T) {
	const namespaces, pollRounds, interval = 40, 20, 100 * time.Millisecond
	var files []bind.Zone
	for i := range namespaces {
		files = append(files, bind.Zone{Name: fmt.Sprintf("z%d.test.", i), Serial: 10})
	}
	w, servers, _ := telling(t, interval, files...)
	for name, role := range map[string]v1beta1.ServerRole{"primary": v1beta1.RolePrimary, "secondary": v1beta1.RoleSecondary} {
		w.Apply(&v1beta1.Bind9Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"pool": "a"}, Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}},
			Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: role, Replicas: new(int32(1))},
		})
	}
	for i := range namespaces {
		z := fakekube.Zone(fmt.Sprintf("z%d.test", i), "primary", "secondary")
		z.Namespace, z.Annotations = fmt.Sprint("team-", i), map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: ns}
		z.Spec.ClusterRef, z.Spec.Bind9InstancesFrom = "", []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}}}
		w.Apply(z)
	}
	zones := query{fields: everyZone}
	w.Eventually("all zones are in sync", func() bool {
		inSync := 0
		for _, s := range w.list(zones).Items {
			if s.Status.InSync {
				inSync++
			}
		}
		return inSync == namespaces
	})
	events := w.watch(query{}, store.WatchOptions{})
	w.Eventually("both servers are listened to", func() bool { return listenedTo(w) == 2 })
	w.Eventually("all namespaces are watched", func() bool { return w.metric("watched_namespaces") == namespaces+1 })
	time.Sleep(2 * interval) // What is asked at first.
	first, began := queries(t, servers[0]), time.Now()
	time.Sleep(pollRounds * interval)
	rounds := int(time.Since(began)/interval) + 2
	// One question for each zone in 19 intervals, and one in three quarters of an interval.
	if asked, most := queries(t, servers[0])-first, namespaces*(rounds/(pollRounds-1)+1)+rounds*4/3; asked > most {
		t.Errorf("a server was asked %d times in %d intervals, want %d times at the most", asked, rounds, most)
	}
	servers[1].Pause()
	seen := map[string]bool{}
	for len(seen) < namespaces {
		if _, s := events.next(); s.ObjectRef.Kind == "DNSZone" && states(s) == "OutOfSync primary-0=InSync secondary-0=Unreachable" {
			seen[s.Namespace] = true
		}
	}
	servers[1].Resume()
}

// A server that cannot be listened to is asked as often as if it had nothing to tell.
func TestWatchWithoutNotices(t *testing.T) {
	w, servers, ears := telling(t, 50*time.Millisecond, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("arecord.www", "InSync primary-0=InSync secondary-0=InSync")
	for _, e := range ears {
		e.end()
	}
	w.Eventually("nobody is listened to", func() bool { return listenedTo(w) == 0 })
	fakekube.Update(t, servers[0], "example.test.", "www.example.test.", "192.0.2.9")
	s := events.until("arecord.www", "OutOfSync primary-0=Divergent secondary-0=Divergent")
	if s.Status.Phase != syncv1.PhaseOutOfSync {
		t.Errorf("phase %s", s.Status.Phase)
	}
}
