package hosttest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// testHolding creates and deletes an RRset, if the backend can hold it. If not, it says so beforehand, and holds up no other.
func testHolding(name, rrtype, rdata string) func(*testing.T, suite) {
	return func(t *testing.T, s suite) {
		set, good := s.set(name, rrtype, 60, rdata), s.set("good", "A", 60, "192.0.2.1")
		want := MapOf(set, good)
		if *s.cannot = s.Backend.Unsupported(s.zone, want)[set.Key]; *s.cannot == "" {
			s.sync(t, want)
		} else if refused, _, err := Sync(t.Context(), s.Backend, s.zone, want); err != nil || len(refused) > 0 {
			t.Fatalf("refused %v, error %v", refused, err)
		}
		s.check(t, MapOf(good))
		s.sync(t, MapOf(good))
		s.isGone(t, MapOf(set))
	}
}

// testTTL changes a TTL and nothing else.
func testTTL(t *testing.T, s suite) {
	for _, ttl := range []uint32{300, 60} {
		s.sync(t, MapOf(s.set("a", "A", ttl, "192.0.2.1", "192.0.2.2")))
	}
}

// testAlias makes an alias of an address, and an address of an alias.
func testAlias(t *testing.T, s suite) {
	s.sync(t, MapOf(s.set("a", "A", 60, "192.0.2.1"), s.set("c", "CNAME", 60, "elsewhere.test.")))
	s.sync(t, MapOf(s.set("c", "A", 60, "192.0.2.1"), s.set("a", "CNAME", 60, "elsewhere.test.")))
}

// testAtomic has one of two RRsets that are to change together changed by somebody else: neither is changed.
func testAtomic(t *testing.T, s suite) {
	address, text := s.set("a", "A", 60, "192.0.2.1"), s.set("a", "TXT", 60, `"one"`)
	s.sync(t, MapOf(address, text))
	seen := s.observe(t)
	s.Damage(t, s.zone, address)
	changes := plan.Changes{
		UpdateOld: []rrset.RRset{address, text}, UpdateNew: []rrset.RRset{s.set("a", "A", 60, "192.0.2.2"), s.set("a", "TXT", 60, `"two"`)},
	}
	if _, err := s.Backend.Apply(t.Context(), s.zone, changes, seen); !errors.Is(err, host.ErrConflict) {
		t.Errorf("error %v, want a conflict", err)
	}
	s.check(t, MapOf(text))
}

// meddled is a backend before whose writes somebody else writes.
type meddled struct {
	host.Backend
	meddle func()
}

func (m meddled) Apply(ctx context.Context, zone string, changes plan.Changes, seen host.Observation) (host.Result, error) {
	m.meddle()
	return m.Backend.Apply(ctx, zone, changes, seen)
}

// syncWhile is sync with somebody else's write between the look and the first update.
func (s suite) syncWhile(t *testing.T, meddle func(), want plan.Map) {
	t.Helper()
	if refused, _, err := Sync(t.Context(), meddled{s.Backend, sync.OnceFunc(meddle)}, s.zone, want); err != nil || len(refused) > 0 {
		t.Fatalf("refused %v, error %v", refused, err)
	}
	s.check(t, want)
}

func testRace(t *testing.T, s suite) {
	theirs := s.set("race", "A", 60, "192.0.2.98")
	s.syncWhile(t, func() { s.PutForeign(t, s.zone, theirs) }, MapOf(s.set("www", "A", 60, "192.0.2.1")))
	s.check(t, MapOf(theirs))
}

func testRaceAtName(t *testing.T, s suite) {
	before := s.set("www", "A", 60, "192.0.2.1")
	s.sync(t, MapOf(before, s.set("more", "A", 60, "192.0.2.20")))
	s.syncWhile(t, func() { s.Damage(t, s.zone, before) }, MapOf(s.set("www", "A", 60, "192.0.2.2"), s.set("more", "A", 60, "192.0.2.21")))
}

// testWrongKey wants a reason and what to do.
func testWrongKey(t *testing.T, s suite) {
	if s.WrongKey == nil {
		*s.cannot = "there is no key and no password"
		return
	}
	var failure *host.Error
	if _, err := s.WrongKey(t).Observe(t.Context(), s.zone); !errors.As(err, &failure) || failure.Reason != "AuthenticationFailed" || failure.Remedy == "" {
		t.Errorf("error %v", err)
	}
}
