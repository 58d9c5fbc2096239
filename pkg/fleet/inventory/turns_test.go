package inventory

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// tarpit is a server that accepts connections and never says anything.
type tarpit struct {
	addr     netip.AddrPort
	accepted chan net.Conn
}

func startTarpit(t *testing.T) *tarpit {
	t.Helper()
	p := &tarpit{accepted: make(chan net.Conn, 10_000)}
	p.addr = tcpserver.Start(t, func(conn net.Conn) {
		p.accepted <- conn
		<-t.Context().Done()
	})
	return p
}

// ask waits for an answer that never comes, until the connection or ctx ends.
func (p *tarpit) ask(ctx context.Context) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.addr.String())
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.Close()
}

func requestOf(namespace, servers string, n int) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("%s.%d", servers, n)}}
}

func serversOf(req ctrl.Request) string {
	servers, _, _ := strings.Cut(req.Name, ".")
	return servers
}

// TestTarpitCostsItsOwnObjects: more objects than there are workers are on servers that never answer. Another namespace's
// object, and one of the same namespace on other servers, are reconciled while all of these wait, and of the waiting ones no
// more than may be under way.
func TestTarpitCostsItsOwnObjects(t *testing.T) {
	p := startTarpit(t)
	done := make(chan ctrl.Request)
	turns := &Turns{PerNamespace: 6, PerServers: 4, ServersOf: serversOf}
	turns.Reconciler = reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if serversOf(req) == "tarpit" {
			p.ask(ctx)
			return ctrl.Result{}, nil
		}
		done <- req
		return ctrl.Result{}, nil
	})
	enqueued := make(chan workqueue.TypedRateLimitingInterface[ctrl.Request], 1)
	c, err := controller.NewUnmanaged("turns", controller.Options{Reconciler: turns, MaxConcurrentReconciles: turns.Workers(), SkipNameValidation: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []source.Source{turns, source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		enqueued <- queue
		return nil
	})} {
		if err := c.Watch(s); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	defer running.Wait()
	defer cancel()

	queue := <-enqueued
	for n := range 3 * turns.Workers() {
		queue.Add(requestOf("hostile", "tarpit", n))
	}
	var held []net.Conn
	for range turns.PerServers {
		held = append(held, <-p.accepted)
	}
	for _, honest := range []ctrl.Request{requestOf("honest", "own", 1), requestOf("hostile", "other", 1)} {
		queue.Add(honest)
		select {
		case got := <-done:
			if got != honest {
				t.Errorf("%s instead of %s", got, honest)
			}
		case <-p.accepted:
			t.Fatalf("more objects wait for the tarpit than may, while %s is to be reconciled", honest)
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for the servers of others", honest)
		}
	}
	if n := len(p.accepted); n > 0 {
		t.Errorf("%d objects too many wait for the tarpit", n)
	}
	// One that ends makes room for one other.
	_ = held[0].Close()
	<-p.accepted
}

// TestTurns: a turn that ends goes to the urgent ones first, and to nobody twice.
func TestTurns(t *testing.T) {
	var queue queueOfTest
	turns := &Turns{
		PerNamespace: 3, PerServers: 2, ServersOf: serversOf,
		IsUrgent: func(req ctrl.Request) bool { return strings.HasSuffix(req.Name, ".9") },
	}
	if err := turns.Start(t.Context(), &queue); err != nil {
		t.Fatal(err)
	}
	var running []turn
	take := func(req ctrl.Request) bool {
		own, ok := turns.take(req)
		if ok {
			running = append(running, own)
		}
		return ok
	}
	end := func() []string {
		turns.end(running[0])
		running = running[1:]
		return queue.take()
	}
	var got []bool
	for _, req := range []ctrl.Request{
		requestOf("a", "x", 1), requestOf("a", "x", 2), requestOf("a", "x", 3), // two on the same servers
		requestOf("a", "y", 1), requestOf("a", "z", 1), // three in all
		requestOf("b", "x", 1), requestOf("a", "x", 9), requestOf("a", "x", 3),
	} {
		got = append(got, take(req))
	}
	if diff := cmp.Diff([]bool{true, true, false, true, false, true, false, false}, got); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"x.9"}, end()); diff != "" {
		t.Error(diff)
	}
	if take(requestOf("a", "x", 4)) {
		t.Error("the turn of the object on its way was given away")
	}
	if !take(requestOf("a", "x", 9)) {
		t.Error("an object that came back has no turn")
	}
	var order []string
	for len(running) > 0 {
		for _, name := range end() {
			order = append(order, name)
			if !take(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: name}}) {
				t.Errorf("%s has no turn", name)
			}
		}
	}
	if diff := cmp.Diff([]string{"x.3", "z.1", "x.4"}, order); diff != "" {
		t.Error(diff)
	}
	if len(turns.busy)+len(turns.given)+len(turns.waiting)+len(turns.isQueued) > 0 {
		t.Errorf("left: %v, %v, %v, %v", turns.busy, turns.given, turns.waiting, turns.isQueued)
	}
}

// queueOfTest keeps what is added.
type queueOfTest struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	added []string
}

func (q *queueOfTest) Add(req ctrl.Request) { q.added = append(q.added, req.Name) }

func (q *queueOfTest) take() []string {
	added := q.added
	q.added = nil
	return added
}

// BenchmarkTurns gives turns to objects of one namespace, nearly all of which wait.
func BenchmarkTurns(b *testing.B) {
	for _, objects := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d waiting", objects), func(b *testing.B) {
			for b.Loop() {
				queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
				turns := &Turns{PerNamespace: 16, PerServers: 16, ServersOf: serversOf}
				if err := turns.Start(b.Context(), queue); err != nil {
					b.Fatal(err)
				}
				for n := range objects {
					queue.Add(requestOf("a", "s", n))
				}
				var taken []turn
				for ended := 0; ended < objects; {
					for queue.Len() > 0 {
						req, _ := queue.Get()
						if own, ok := turns.take(req); ok {
							taken = append(taken, own)
						}
						queue.Done(req)
					}
					for _, own := range taken {
						turns.end(own)
					}
					ended, taken = ended+len(taken), taken[:0]
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(objects), "µs/turn")
		})
	}
}
