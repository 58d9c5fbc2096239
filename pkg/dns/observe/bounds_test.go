package observe_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/test/named"
)

// held keeps replies over one network back and knows about which zones.
type held struct {
	network string
	open    chan struct{}

	mu    sync.Mutex
	zones map[string]bool
	most  int
}

func hold(p *named.Proxy, network string) *held {
	h := &held{network: network, open: make(chan struct{}), zones: map[string]bool{}}
	p.Filter(h.filter)
	return h
}

func (h *held) filter(network string, reply []byte) ([]byte, error) {
	m := new(dns.Msg)
	if err := m.Unpack(reply); err != nil {
		return nil, err
	}
	if network != h.network || len(m.Question) == 0 {
		return reply, nil
	}
	name := m.Question[0].Name
	h.mu.Lock()
	h.zones[name] = true
	h.most = max(h.most, len(h.zones))
	h.mu.Unlock()
	<-h.open
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.zones, name)
	return reply, nil
}

func (h *held) now() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.zones)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestConcurrency: a server is asked no more questions, and for no more transfers, at a time than it should be.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	const zones, questions, transfers = 12, 5, 2
	var all []named.Zone
	for i := range zones {
		all = append(all, named.Zone{Name: fmt.Sprintf("z%d.test.", i)})
	}
	s := named.Start(t, named.Options{Zones: all})
	for network, want := range map[string]int{"udp": questions, "tcp": transfers} {
		t.Run(network, func(t *testing.T) {
			p := named.StartProxy(t, s.Addr)
			h := hold(p, network)
			o := observe.New(observe.Options{Timeout: time.Minute, Questions: questions, Transfers: transfers})
			var wg sync.WaitGroup
			for _, z := range all {
				wg.Go(func() {
					if obs := o.Observe(t.Context(), peerAt(p.Addr), zoneOf(z.Name), &s.Transfer, time.Now()); obs.Mirror == nil {
						t.Errorf("%s: %v", z.Name, obs.Err)
					}
				})
			}
			for done := range zones { // One at a time: without a limit all others have long arrived by the end.
				eventually(t, "as many as may are under way", func() bool { return h.now() >= min(want, zones-done) })
				h.open <- struct{}{}
			}
			wg.Wait()
			if h.most != want {
				t.Errorf("%d under way, want %d", h.most, want)
			}
		})
	}
}

// TestForgottenDuringTransfer: a zone that is forgotten while it is transferred leaves nothing behind, and who waits for it
// is answered.
func TestForgottenDuringTransfer(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	p := named.StartProxy(t, s.Addr)
	h := hold(p, "tcp")
	o := observe.New(observe.Options{Timeout: time.Minute})
	hasty, cancel := context.WithCancel(t.Context())
	left := make(chan observe.Observation)
	go func() { left <- o.Observe(hasty, peerAt(p.Addr), zoneOf(zone), &s.Transfer, time.Now()) }()
	eventually(t, "the zone is being transferred", func() bool { return h.now() == 1 })
	o.Forget(peerAt(p.Addr), zoneOf(zone))
	if n := o.Kept(); n != 0 {
		t.Errorf("%d kept of a zone that is forgotten", n)
	}
	cancel()
	if obs := <-left; !errors.Is(obs.Err, context.Canceled) {
		t.Errorf("%+v", obs)
	}
	waits := make(chan observe.Observation)
	go func() { waits <- o.Observe(t.Context(), peerAt(p.Addr), zoneOf(zone), &s.Transfer, time.Now()) }()
	close(h.open)
	if obs := <-waits; obs.Mirror == nil || obs.Serial != 7 {
		t.Errorf("%+v", obs)
	}
	o.Forget(peerAt(p.Addr), zoneOf(zone))
	if n := o.Kept(); n != 0 {
		t.Errorf("%d kept in the end", n)
	}
}

// TestHangingTransfers: of a server whose transfers never end all zones are told so, also those whose turn never comes.
func TestHangingTransfers(t *testing.T) {
	var all []named.Zone
	for i := range 6 {
		all = append(all, named.Zone{Name: fmt.Sprintf("z%d.test.", i)})
	}
	s := named.Start(t, named.Options{Zones: all})
	p := named.StartProxy(t, s.Addr)
	h := hold(p, "tcp")
	defer close(h.open)
	o := observe.New(observe.Options{Timeout: time.Minute, TransferTimeout: 200 * time.Millisecond, Transfers: 1})
	var wg sync.WaitGroup
	for _, z := range all {
		wg.Go(func() {
			obs := o.Observe(t.Context(), peerAt(p.Addr), zoneOf(z.Name), &s.Transfer, time.Now())
			if got, want := obs.Message(), "the zone's content could not be transferred: no answer in time"; got != want || obs.Mirror != nil {
				t.Errorf("%s: %q, want %q", z.Name, got, want)
			}
		})
	}
	wg.Wait()
}
