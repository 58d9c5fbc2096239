package ask

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// clientsServer is a server that answers everybody for zones below example., except those whose names begin with "refused".
type clientsServer struct {
	path  syncstatus.Path
	asked atomic.Int32
	stop  func()
}

func startClientsServer(t *testing.T) *clientsServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &clientsServer{path: syncstatus.Path{Namespace: "dns", Instance: "a", Addr: netip.MustParseAddrPort(conn.LocalAddr().String())}}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		s.asked.Add(1)
		m := new(dns.Msg).SetReply(q)
		zone := q.Question[0].Name
		if strings.HasPrefix(zone, "refused") {
			m.Rcode = dns.RcodeRefused
		} else {
			m.Authoritative = true
			m.Answer = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET}, Ns: ".", Mbox: ".", Serial: 7}}
		}
		_ = w.WriteMsg(m)
	})}
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	<-started
	s.stop = sync.OnceFunc(func() {
		_ = server.Shutdown()
		<-ended
	})
	t.Cleanup(s.stop)
	return s
}

// takeAsked returns how many questions there were since it was last called.
func (s *clientsServer) takeAsked() int { return int(s.asked.Swap(0)) }

// A path is asked about each zone once, and then about one of them for all; about those that it refuses every time. When it falls silent,
// one question tells for all zones.
func TestAskPath(t *testing.T) {
	s := startClientsServer(t)
	a := &Asker{options: Options{Deadline: time.Second}, answers: evaluate.NewAnswers(), names: cache.NewExpiring()}
	zones := []string{"a.example.", "b.example.", "c.example.", "refused.example."}
	ask := func(since time.Time) int {
		t.Helper()
		a.askPath(t.Context(), s.path, zones, since)
		return s.takeAsked()
	}
	require := func(want ...syncv1.ServerState) {
		t.Helper()
		for i, zone := range zones {
			o, asked := a.answers.OnPath(s.path, zone)
			if state := syncstatus.PathState(o); !asked || state != want[i] {
				t.Errorf("%s: %s, asked: %v", zone, state, asked)
			}
		}
	}
	passTime := func() {
		for _, zone := range zones {
			o, _ := a.answers.OnPath(s.path, zone)
			o.At = o.At.Add(-2 * pathProbe)
			a.answers.KeepOnPath(s.path, zone, o)
		}
	}
	if n := ask(time.Time{}); n != 4 {
		t.Errorf("asked about %d zones, want all", n)
	}
	require(syncv1.StateInSync, syncv1.StateInSync, syncv1.StateInSync, syncv1.StateRefused)
	if n := ask(time.Time{}); n != 0 {
		t.Errorf("asked about %d zones although older answers will do", n)
	}
	if n := ask(time.Now()); n != 1 {
		t.Errorf("asked about %d zones, want the one that was refused", n)
	}

	zones = zones[:3]
	if n := ask(time.Now()); n != 0 {
		t.Errorf("asked about %d zones a moment after the path answered", n)
	}
	passTime()
	if n := ask(time.Now()); n != 1 {
		t.Errorf("asked about %d zones, want one for all", n)
	}
	passTime()
	s.stop()
	ask(time.Now())
	require(syncv1.StateUnreachable, syncv1.StateUnreachable, syncv1.StateUnreachable)
}

// A reader who comes while a question on a path is under way waits for that one, and not for another after it.
func TestAskSilentPath(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") // Nobody answers there.
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	path := syncstatus.Path{Namespace: "dns", Instance: "a", Addr: netip.MustParseAddrPort(conn.LocalAddr().String())}
	a := &Asker{options: Options{Deadline: 2 * time.Second}, answers: evaluate.NewAnswers(), names: cache.NewExpiring()}
	zones := []string{"a.example."}
	first := parallel.Start(func() { a.askPath(t.Context(), path, zones, time.Now()) })
	if _, _, err := conn.ReadFrom(make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	a.askPath(t.Context(), path, zones, since)
	first()
	if o, asked := a.answers.OnPath(path, zones[0]); !asked || syncstatus.PathState(o) != syncv1.StateUnreachable || !o.At.Before(since) {
		t.Errorf("%s, asked: %v, %s after the second reader came", syncstatus.PathState(o), asked, o.At.Sub(since))
	}
}
