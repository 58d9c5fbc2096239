package coredns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/test/heap"
	"github.com/lockstep-dns/lockstep/test/hostileetcd"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// Fields of etcd's messages.
const (
	rangeKVs, rangeMore                               = 2, 3
	kvKey, kvModRevision, kvValue                     = 1, 3, 5
	watchID, watchCreated, watchCanceled, watchEvents = 2, 3, 4, 11
	watchFragment                                     = 7
	authToken                                         = 2
)

var (
	field, number = hostileetcd.Field, hostileetcd.Number
	loopback      = netip.MustParseAddr("127.0.0.1")
)

// rawKeyValue is an encoded key-value of the zone z.test.
func rawKeyValue(key, value string) []byte {
	return field(rangeKVs, slices.Concat(field(kvKey, []byte("/skydns/test/z/"+key)), number(kvModRevision, 1), field(kvValue, []byte(value))))
}

// page has as many copies of a field as are in a message of some size, and says that there is more.
func page(size int, element []byte) []byte {
	return append(bytes.Repeat(element, size/len(element)), number(rangeMore, 1)...)
}

// always answers every call with the same message.
func always(message []byte) hostileetcd.Answer {
	return func(_ string, _ []byte, send func([]byte) error) error { return send(message) }
}

// startBackend returns a backend whose etcd answers like that.
func startBackend(t *testing.T, o Options, answer hostileetcd.Answer) *Backend {
	t.Helper()
	o.Endpoints = []string{"http://" + hostileetcd.Start(t, loopback, answer).String()}
	o.Owner = "team/corp"
	b := New(o)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// endless answers each question for a range with the next page of keys, in order and without end.
func endless(value string) hostileetcd.Answer {
	var next atomic.Int64
	return func(_ string, _ []byte, send func([]byte) error) error {
		var message []byte
		for range 1000 {
			message = append(message, rawKeyValue(fmt.Sprintf("k%012d", next.Add(1)), value)...)
		}
		return send(append(message, number(rangeMore, 1)...))
	}
}

// nested is a zone with a chain of keys below each other: each answers with all that are below it.
func nested(depth int) []byte {
	var message []byte
	key := "a"
	for i := range depth {
		message = append(message, rawKeyValue(key, fmt.Sprintf(`{"host":"10.%d.%d.1","ttl":60}`, i/250, i%250))...)
		key += "/a"
	}
	return message
}

// Whatever a hostile etcd sends, the memory that it takes is bounded, and the error says what was exceeded.
func TestHostileAnswers(t *testing.T) {
	const encoded = maxEncoded - 1024
	unknown := slices.Concat(number(rangeMore, 0), bytes.Repeat(number(100, 1), encoded/3))
	for name, c := range map[string]struct {
		answer hostileetcd.Answer
		reason string
		text   string
	}{
		"empty key-values":          {always(page(encoded, field(rangeKVs, nil))), reasonTooLarge, "when it is decoded"},
		"more than was asked for":   {always(page(encoded, field(rangeKVs, nil))[:20_000]), reasonUnreachable, "not asked for"},
		"a large message":           {always(page(60<<20, field(rangeKVs, nil))), reasonTooLarge, "a single answer"},
		"empty pages":               {always(number(rangeMore, 1)), reasonUnreachable, "not asked for"},
		"the same page again":       {always(append(rawKeyValue("a", "{}"), number(rangeMore, 1)...)), reasonUnreachable, "not in their order"},
		"keys of others":            {always(append(field(rangeKVs, field(kvKey, []byte("/x"))), number(rangeMore, 1)...)), reasonUnreachable, "not asked for"},
		"endless keys":              {endless("{}"), reasonTooLarge, "one zone may have"},
		"endless values":            {endless(`{"host":"` + strings.Repeat("x", 1500) + `"}`), reasonTooLarge, "one zone may have"},
		"keys below each other":     {always(nested(1200)), reasonTooLarge, "below each other"},
		"unknown fields":            {always(unknown), "", ""},
		"nested without end":        {always(field(1, bytes.Repeat([]byte{0x0a}, 1000))), reasonFailed, ""},
		"no message":                {always([]byte{0xff, 0xff}), reasonFailed, ""},
		"an error without end":      {refuse(strings.Repeat("x", 40_000)), reasonFailed, "an error that etcd does not have (FailedPrecondition)"},
		"metadata larger than that": {refuse(strings.Repeat("x", 1<<20)), reasonFailed, ""},
		"no answer":                 {silent, reasonUnreachable, ""},
		"answers without end":       {many, reasonFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cost := heap.OfChild(t, func() string { return hostileetcd.Start(t, loopback, c.answer).String() }, func(etcd string) {
				b := New(Options{MaxBytes: 32 << 20, Timeout: 5 * time.Second, Endpoints: []string{"http://" + etcd}, Owner: "team/corp"})
				defer func() { _ = b.Close() }()
				_, err := b.Observe(t.Context(), "z.test.")
				if failure, ok := errors.AsType[*host.Error](err); c.reason != "" && (!ok || failure.Reason != c.reason || !strings.Contains(err.Error(), c.text) || len(err.Error()) > 1000) {
					t.Errorf("the error is %.1000v", err)
				}
			})
			t.Logf("at most %d MiB were taken, given up after %s", cost.Bytes>>20, cost.Time)
			if cost.Bytes > 64<<20 {
				t.Errorf("%d MiB were taken", cost.Bytes>>20)
			}
		})
	}
}

// silent answers nothing.
func silent(string, []byte, func([]byte) error) error { select {} }

// many answers without end, where one answer is expected.
func many(_ string, _ []byte, send func([]byte) error) error {
	for {
		if err := send([]byte{0}); err != nil {
			return err
		}
	}
}

func refuse(text string) hostileetcd.Answer {
	return func(string, []byte, func([]byte) error) error { return status.Error(codes.FailedPrecondition, text) }
}

// A token is sent with each request, so it has a limit as well.
func TestHostileSignIn(t *testing.T) {
	b := startBackend(t, Options{Username: "u", Password: "p", Timeout: 5 * time.Second}, always(field(authToken, bytes.Repeat([]byte("x"), 1<<20))))
	err := b.Check(t.Context(), "z.test.")
	if err == nil || !strings.Contains(err.Error(), "answer") {
		t.Errorf("error %v", err)
	}
}

// An etcd that says what none says ends a watch and nothing else, and keeps no memory. The client's own watcher panics.
func TestHostileWatch(t *testing.T) {
	created := slices.Concat(number(watchID, 7), number(watchCreated, 1))
	canceled := slices.Concat(number(watchID, 7), number(watchCanceled, 1))
	event := slices.Concat(number(watchID, 7), field(watchEvents, nil))
	large := slices.Concat(number(watchID, 7), number(watchFragment, 1), bytes.Repeat(field(watchEvents, nil), 1<<20-1024))
	for name, messages := range map[string][][]byte{
		"an event without a key":      {created, event},
		"canceled twice":              {created, canceled, canceled, event},
		"created twice":               {created, created, event, created, canceled},
		"nothing asked for":           {slices.Concat(number(watchID, 1<<63), number(watchCanceled, 1)), event, created},
		"fragments without end":       append([][]byte{created}, slices.Repeat([][]byte{large}, 30)...),
		"larger than a message may":   {created, bytes.Repeat(field(watchEvents, nil), 20<<20)},
		"something else than message": {created, {0xff}},
	} {
		t.Run(name, func(t *testing.T) {
			cost := heap.OfChild(t, func() string {
				return hostileetcd.Start(t, loopback, func(_ string, _ []byte, send func([]byte) error) error {
					for _, m := range messages {
						if err := send(m); err != nil {
							return err
						}
					}
					return errors.New("over")
				}).String()
			}, func(etcd string) {
				b := New(Options{Endpoints: []string{"http://" + etcd}, Owner: "team/corp"})
				defer func() { _ = b.Close() }()
				if !b.follow(t.Context(), "z.test.", func() {}) {
					t.Error("the watch has not begun")
				}
			})
			t.Logf("at most %d MiB were taken, over after %s", cost.Bytes>>20, cost.Time)
			if cost.Bytes > 64<<20 {
				t.Errorf("%d MiB were taken", cost.Bytes>>20)
			}
		})
	}
}

// What is taken for a message is at least what decoding it allocates.
func TestDecodedSize(t *testing.T) {
	for name, raw := range map[string][]byte{
		"empty":  page(100_000, field(rangeKVs, nil)),
		"keys":   page(100_000, field(rangeKVs, field(kvKey, []byte("k")))),
		"values": page(100_000, rawKeyValue("abc", strings.Repeat("v", 100))),
	} {
		allocated := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := proto.Unmarshal(raw, &etcdserverpb.RangeResponse{}); err != nil {
					b.Fatal(err)
				}
			}
		}).AllocedBytesPerOp()
		left, err := takeMessage(1<<30, raw, (&etcdserverpb.RangeResponse{}).ProtoReflect().Descriptor(), maxDepth)
		t.Logf("%s: %d bytes on the wire, %d allocated, %d taken", name, len(raw), allocated, 1<<30-left)
		if err != nil || int64(1<<30-left) < allocated {
			t.Errorf("%s: %d bytes are taken, and %d allocated: %v", name, 1<<30-left, allocated, err)
		}
	}
}

// Signing in at an etcd that does not answer holds up nobody but those who wait for it: Close returns, and each waits for as long as
// its context lasts.
func TestDeadSignIn(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	b := startBackend(t, Options{Username: "u", Password: "p", Timeout: time.Hour}, func(string, []byte, func([]byte) error) error {
		arrived <- struct{}{}
		<-release
		return nil
	})
	defer close(release)
	done := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, err := b.connect(ctx); done <- err }()
	go func() { _, err := b.connect(t.Context()); done <- err }()
	<-arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("a client that is closed is used")
	}
}

// holder holds connections without a word, and counts those that last: one that was closed elsewhere is open here for a moment.
type holder struct {
	mu   sync.Mutex
	open map[net.Conn]time.Time
	held int
}

func (h *holder) serve(c net.Conn) {
	const lasts = time.Second
	h.mu.Lock()
	if h.open == nil {
		h.open = map[net.Conn]time.Time{}
	}
	h.open[c] = time.Now()
	h.mu.Unlock()
	counted := time.AfterFunc(lasts, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		n := 0
		for _, since := range h.open {
			if time.Since(since) >= lasts {
				n++
			}
		}
		h.held = max(h.held, n)
	})
	_, _ = io.Copy(io.Discard, c)
	counted.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
}

func (h *holder) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// One of many endpoints is connected to, and few at a time while none answers.
func TestFewConnections(t *testing.T) {
	const endpoints = 16
	var tried atomic.Int64
	count := func(netip.Addr) bool { tried.Add(1); return true }
	b := startBackend(t, Options{Account: outbound.NewGate(count, outbound.Limits{}).Account("team", "corp", MaxConnections)}, always(nil))
	for range endpoints - 1 {
		b.options.Endpoints = append(b.options.Endpoints, "http://"+hostileetcd.Start(t, loopback, always(nil)).String())
	}
	for range 5 {
		if err := b.Check(t.Context(), "z.test."); err != nil {
			t.Fatal(err)
		}
	}
	if n := tried.Load(); n != 1 {
		t.Errorf("%d connections with an etcd that answers", n)
	}
	silent := New(Options{Account: outbound.NewGate(count, outbound.Limits{}).Account("team", "silent", MaxConnections), Timeout: 4 * time.Second})
	t.Cleanup(func() { _ = silent.Close() })
	var held holder
	for range endpoints {
		silent.options.Endpoints = append(silent.options.Endpoints, "http://"+tcpserver.Start(t, held.serve).String())
	}
	err := silent.Check(t.Context(), "z.test.")
	if n := held.most(); err == nil || n == 0 || n > MaxConnections {
		t.Errorf("%d connections with an etcd that is silent, error %v", n, err)
	}
}
