package ask

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// TestDeadlines: a silent server is waited for until the deadline, one that answers for longer, and none for ever.
func TestDeadlines(t *testing.T) {
	const deadline = 2 * time.Second
	const credit = deadline / answersForDeadline
	server := observe.Peer{Addr: netip.MustParseAddrPort("192.0.2.1:53"), Namespace: "dns"}
	other := observe.Peer{Addr: server.Addr, Namespace: "other", Provider: "same"}
	for name, test := range map[string]struct {
		answering observe.Peer
		every     time.Duration
		want      time.Duration
	}{
		"a silent server":               {want: deadline},
		"one that answers others":       {answering: other, every: time.Millisecond, want: deadline},
		"one that answers once a while": {answering: server, every: 1900 * time.Millisecond, want: deadline + credit},
		"one with half of the credit":   {answering: server, every: 2 * credit, want: 2 * deadline},
		"a busy one":                    {answering: server, every: time.Millisecond, want: maxWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newAnswerDeadlines(deadline)
				began := time.Now()
				ctx, end := d.await(t.Context(), server)
				for test.every > 0 && ctx.Err() == nil {
					select {
					case <-time.After(test.every):
						d.noteAnswer(test.answering)
					case <-ctx.Done():
					}
				}
				<-ctx.Done()
				if took := time.Since(began); (took-test.want).Abs() > 2*credit || !isTooSlow(ctx) {
					t.Errorf("waited for %s, want %s: %v", took, test.want, context.Cause(ctx))
				}
				if end(); len(d.servers) > 0 {
					t.Error("a server is kept that nobody waits for")
				}
			})
		})
	}
}

// TestServerOfManyZones: of a server that answers 32 questions at a time, each in 20 ms, all 5,000 zones are known. A fixed deadline
// would have 1,800 of them pass for silent.
func TestServerOfManyZones(t *testing.T) {
	const deadline, zones, atOnce, took = 2 * time.Second, 5000, 32, 20 * time.Millisecond
	server := observe.Peer{Addr: netip.MustParseAddrPort("192.0.2.1:53"), Namespace: "dns"}
	for name, test := range map[string]struct {
		await func(context.Context, *answerDeadlines) (context.Context, func())
		want  int32
	}{
		"deadlines": {func(ctx context.Context, d *answerDeadlines) (context.Context, func()) { return d.await(ctx, server) }, zones},
		"a fixed deadline": {func(ctx context.Context, _ *answerDeadlines) (context.Context, func()) {
			return context.WithTimeout(ctx, deadline-time.Millisecond)
		}, 99 * atOnce},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, turns := newAnswerDeadlines(deadline), make(chan struct{}, atOnce)
				var answered atomic.Int32
				var questions sync.WaitGroup
				for range zones {
					questions.Go(func() {
						ctx, end := test.await(t.Context(), d)
						defer end()
						select {
						case turns <- struct{}{}:
							defer func() { <-turns }()
						case <-ctx.Done():
							return
						}
						select {
						case <-time.After(took):
							d.noteAnswer(server)
							answered.Add(1)
						case <-ctx.Done():
						}
					})
				}
				questions.Wait()
				if n := answered.Load(); n != test.want {
					t.Errorf("%d of %d questions are answered, want %d", n, zones, test.want)
				}
			})
		})
	}
}

// TestDeadlineOfCaller: that a caller gives up says nothing about the server.
func TestDeadlineOfCaller(t *testing.T) {
	caller, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	ctx, end := newAnswerDeadlines(time.Minute).await(caller, observe.Peer{})
	defer end()
	if <-ctx.Done(); isTooSlow(ctx) {
		t.Error(context.Cause(ctx))
	}
}

// TestSharedAnswerCountsOnce: many who ask a slow server for the same do not make it one that answers much.
func TestSharedAnswerCountsOnce(t *testing.T) {
	w := fakekube.New(t)
	inf := w.NewInformers()
	index, answers := desired.NewIndex(inf, w.FindServers), evaluate.NewAnswers()
	a := New(index, answers, evaluate.New(index, answers, nil), w.ReadKey, Options{Deadline: time.Minute})
	for _, kind := range inf.TrackedKinds() {
		err := inf.OnEvent(kind, func(o metav1.Object, _ bool) {
			index.Apply(desired.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()})
			index.ServersChanged()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	go inf.Run(t.Context())
	w.Eventually("the caches are filled", inf.HasSynced)
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test."}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	w.Apply(fakekube.Zone("example.test", "primary"))
	var zone *desired.Zone
	w.Eventually("the zone and its server are known", func() bool {
		s, ok := index.Resolve(desired.Key{Kind: "DNSZone", Namespace: fakekube.Namespace, Name: "example.test"})
		if ok && len(s.Zones) == 1 && len(s.Zones[0].Servers) == 1 {
			zone = s.Zones[0]
		}
		return zone != nil
	})
	_, end := a.deadlines.await(t.Context(), zone.Servers[0].Peer()) // Keeps the count.
	defer end()
	since := time.Now()
	var readers sync.WaitGroup
	for range 50 {
		readers.Go(func() { a.AskServer(t.Context(), zone, zone.Servers[0], since) })
	}
	readers.Wait()
	if n := a.deadlines.servers[zone.Servers[0].Peer()].answers; n != 1 {
		t.Errorf("one answer counts as %d", n)
	}
}
