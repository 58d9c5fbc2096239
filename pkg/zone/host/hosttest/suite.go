// Package hosttest is what every host.Backend passes against real servers: it creates, changes and deletes, alone and beside
// others who write, with replies that are lost and servers that start again, and asks the servers themselves what they answer.
package hosttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Bench is real servers with the backend that writes to them. A zone is used by one test only.
type Bench struct {
	Backend host.Backend
	// Other writes to the same place for another owner.
	Other host.Backend
	// Ask returns what a server answers for a name and type.
	Ask func(t *testing.T, zone string, key rrset.Key) rrset.RRset
	// PutForeign has somebody else put a value beside those of an RRset. Damage has somebody take one of its values away.
	PutForeign, Damage func(t *testing.T, zone string, set rrset.RRset)
	// Restart stops the servers, calls meanwhile, and starts them again.
	Restart func(t *testing.T, meanwhile func())
	// LoseReplies returns a backend that connects by a way on which, from now on, requests arrive and replies do not, until restored; nil if
	// nothing is sent.
	LoseReplies func(t *testing.T) (b host.Backend, lose, restore func())
	// WrongKey returns a backend that signs in with a wrong key or password; nil if there is none.
	WrongKey func(t *testing.T) host.Backend
	// Zones returns the name of a zone that the servers serve and that nobody has used yet.
	Zones func() string
}

// suiteCases are the tests, each with the rows of the table that it is the proof of. What a backend holds is read from the place itself and
// not from answers, so that where it can hold wildcards none is taken for something else.
var suiteCases = []struct {
	name string
	rows []string
	run  func(*testing.T, suite)
}{
	{"Types", []string{CaseTypes}, testTypes},
	{"CAA", []string{CaseCAA}, testHolding("caa", "CAA", `0 issue "ca.test"`)},
	{"TTL", []string{CaseTTL}, testTTL},
	{"Alias", []string{CaseAlias}, testAlias},
	{"Wildcards", []string{CaseWildcards, CaseSynthesized}, testHolding("*.wild", "A", "192.0.2.5")},
	{"Delegations", []string{CaseDelegations}, testHolding("sub", "NS", "ns.elsewhere.test.")},
	{"Atomic", []string{CaseAtomic}, testAtomic},
	{"Random", nil, testRandom},
	{"TwoWriters", nil, testTwoWriters},
	{"Race", []string{CaseRace}, testRace},
	{"RaceAtName", []string{CaseRaceAtName}, testRaceAtName},
	{"LostReply", []string{CaseLostReply}, testLostReply},
	{"RefusedAmongGood", []string{CaseRefused}, testRefused},
	{"Drift", []string{CaseDrift}, testDrift},
	{"Foreign", []string{CaseForeign}, testForeign},
	{"OtherOwner", nil, testOtherOwner},
	{"WrongKey", []string{CaseWrongKey}, testWrongKey},
	{"Watch", nil, testWatch},
	{"Many", []string{CaseMany}, testMany},
}

// Run runs the suite, and returns what the backend was found to do.
func Run(t *testing.T, b Bench) Column {
	found := Column{CaseSerial: "its servers make up the SOA: there is no serial"}
	var mu sync.Mutex
	t.Run("Case", func(t *testing.T) {
		for _, c := range suiteCases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := suite{Bench: b, zone: b.Zones(), cannot: new(string)}
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					for _, row := range c.rows {
						found[row] = Cell(!t.Failed() && *s.cannot == "", *s.cannot)
					}
				}()
				c.run(t, s)
			})
		}
	})
	return found
}

// RunRestart tests what outlives a restart. It disturbs whoever else uses the servers.
func RunRestart(t *testing.T, b Bench) {
	testRestart(t, suite{Bench: b, zone: b.Zones(), cannot: new(string)})
}

type suite struct {
	Bench
	zone string
	// cannot is why the backend cannot do what a test is about; empty if it can.
	cannot *string
}

func (s suite) set(name, rrtype string, ttl uint32, rdata ...string) rrset.RRset {
	if name == "@" {
		name = s.zone
	} else {
		name += "." + s.zone
	}
	return rrset.New(rrset.Key{Name: name, Type: dns.StringToType[rrtype]}, ttl, rdata...)
}

// MapOf makes content of RRsets.
func MapOf(sets ...rrset.RRset) plan.Map {
	m := plan.Map{}
	for _, set := range sets {
		m[set.Key] = set
	}
	return m
}

// Sync brings a zone to a content, without what the backend cannot hold, as a pass does. It returns what was refused and how often it
// read the zone.
func Sync(ctx context.Context, b host.Backend, zone string, want plan.Map) (refused map[rrset.Key]error, reads int, err error) {
	supported := plan.Map{}
	reasons := b.Unsupported(zone, want)
	for key, set := range want {
		if reasons[key] == "" {
			supported[key] = set
		}
	}
	for reads = 1; ; reads++ {
		seen, err := b.Observe(ctx, zone)
		if err != nil {
			return refused, reads, err
		}
		changes := plan.Calculate(supported, seen.Content, seen.Ours, rrset.SOA{}, rrset.SOA{})
		if !changes.HasChanges() || reads > 1 && len(refused) == changes.Len() {
			return refused, reads, nil
		}
		result, err := b.Apply(ctx, zone, changes, seen)
		refused = result.Refused
		if err != nil && !errors.Is(err, host.ErrConflict) && !errors.Is(err, host.ErrUnknown) {
			return refused, reads, err
		}
	}
}

// sync brings the zone to a content, and has a server asked for all of it.
func (s suite) sync(t *testing.T, want plan.Map) {
	t.Helper()
	if refused, _, err := Sync(t.Context(), s.Backend, s.zone, want); err != nil || len(refused) > 0 {
		t.Fatalf("refused %v, error %v", refused, err)
	}
	s.check(t, want)
}

func (s suite) check(t *testing.T, want plan.Map) {
	t.Helper()
	for key, set := range want {
		if got := s.Ask(t, s.zone, key); !got.Equal(set) {
			t.Errorf("a server answers %s, want %s", got, set)
		}
	}
}

func (s suite) isGone(t *testing.T, sets plan.Map) {
	t.Helper()
	for key := range sets {
		if got := s.Ask(t, s.zone, key); len(got.Rdata) > 0 {
			t.Errorf("a server still answers %s", got)
		}
	}
}

func (s suite) observe(t *testing.T) host.Observation {
	t.Helper()
	seen, err := s.Backend.Observe(t.Context(), s.zone)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// testTypes creates, changes and deletes an RRset of each type, at a name of its own and at one that others are below.
func testTypes(t *testing.T, s suite) {
	for rrtype, versions := range map[string][2][]string{
		"A":     {{"192.0.2.1", "192.0.2.2"}, {"192.0.2.2", "192.0.2.3"}},
		"AAAA":  {{"2001:db8::1"}, {"2001:db8::2"}},
		"TXT":   {{`"one"`, `"two \"\\ \195\164"`}, {`"three"`}},
		"CNAME": {{"a.elsewhere.test."}, {"b.elsewhere.test."}},
		"PTR":   {{"a.elsewhere.test."}, {"b.elsewhere.test."}},
		"MX":    {{"10 a.elsewhere.test.", "20 b.elsewhere.test."}, {"10 c.elsewhere.test."}},
		"SRV":   {{"10 100 5060 a.elsewhere.test."}, {"10 50 5060 b.elsewhere.test.", "10 50 5061 c.elsewhere.test."}},
	} {
		name := strings.ToLower(rrtype)
		first, second := s.set(name, rrtype, 300, versions[0]...), s.set(name, rrtype, 60, versions[1]...)
		s.sync(t, MapOf(first))
		s.sync(t, MapOf(second))
		both := MapOf(second, s.set("below."+name, rrtype, 60, versions[0]...))
		if len(s.Backend.Unsupported(s.zone, both)) == 0 {
			s.sync(t, both)
		}
		s.sync(t, MapOf())
		s.isGone(t, MapOf(second))
	}
	if n := s.observe(t).Content.Len(); n != 0 {
		t.Errorf("%d RRsets are left", n)
	}
}

// testRandom changes a zone from one random content to another: what is not refused beforehand is answered exactly.
func testRandom(t *testing.T, s suite) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for range 30 {
		want := RandomZone(r, s.zone, 1+r.IntN(30))
		for key := range s.Backend.Unsupported(s.zone, want) {
			delete(want, key)
		}
		s.sync(t, want)
		if seen := s.observe(t); seen.Content.Len() != len(want) {
			t.Errorf("%d RRsets observed, want %d", seen.Content.Len(), len(want))
		}
	}
}

// testTwoWriters has two plans that were made from the same observation: one is carried out.
func testTwoWriters(t *testing.T, s suite) {
	s.sync(t, MapOf(s.set("a", "A", 60, "192.0.2.1")))
	for round := range 10 {
		seen := s.observe(t)
		have, _ := seen.Content.Get(s.set("a", "A", 0).Key)
		var wg sync.WaitGroup
		var errs [4]error
		for i := range errs {
			wg.Go(func() {
				want := s.set("a", "A", 60, fmt.Sprintf("192.0.2.%d", 10+10*round+i))
				_, errs[i] = s.Backend.Apply(t.Context(), s.zone, plan.Changes{UpdateOld: []rrset.RRset{have}, UpdateNew: []rrset.RRset{want}}, seen)
			})
		}
		wg.Wait()
		winner := slices.Index(errs[:], nil)
		for i, err := range errs {
			if i != winner && !errors.Is(err, host.ErrConflict) {
				t.Fatalf("round %d: %v", round, errs)
			}
		}
		s.check(t, MapOf(s.set("a", "A", 60, fmt.Sprintf("192.0.2.%d", 10+10*round+winner))))
	}
}

// testLostReply loses the reply to a write: the outcome is unknown, nothing is sent again, and reading back shows what is.
func testLostReply(t *testing.T, s suite) {
	if s.LoseReplies == nil {
		*s.cannot = "nothing is sent"
		return
	}
	b, lose, restore := s.LoseReplies(t)
	want := MapOf(s.set("a", "A", 60, "192.0.2.1"))
	seen, err := b.Observe(t.Context(), s.zone)
	if err != nil {
		t.Fatal(err)
	}
	lose()
	changes := plan.Calculate(want, seen.Content, seen.Ours, rrset.SOA{}, rrset.SOA{})
	if _, err := b.Apply(t.Context(), s.zone, changes, seen); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("error %v, want that the outcome is unknown", err)
	}
	restore()
	s.check(t, want)
	if refused, reads, err := Sync(t.Context(), b, s.zone, want); err != nil || len(refused) > 0 || reads != 1 {
		t.Errorf("afterwards: %v, %v, %d reads", refused, err, reads)
	}
}

// testRefused has RRsets that cannot be held, alone or because of others, among good ones.
func testRefused(t *testing.T, s suite) {
	good := MapOf(s.set("a", "A", 60, "192.0.2.1"), s.set("b", "TXT", 60, `"x"`), s.set("c", "A", 60, "192.0.2.3"))
	s.PutForeign(t, s.zone, s.set("c", "A", 60, "192.0.2.99"))
	if refused, _, err := Sync(t.Context(), s.Backend, s.zone, good); err != nil || len(refused) != 1 || refused[s.set("c", "A", 0).Key] == nil {
		t.Errorf("refused %v, error %v", refused, err)
	} else {
		t.Log(refused)
	}
	delete(good, s.set("c", "A", 0).Key)
	s.check(t, good)
}

// testDrift has somebody else take a value away: it is seen and put back.
func testDrift(t *testing.T, s suite) {
	want := MapOf(
		s.set("a", "A", 60, "192.0.2.1", "192.0.2.2"), s.set("b", "CNAME", 60, "x.elsewhere.test."), s.set("c", "TXT", 60, `"x"`),
		s.set("@", "A", 60, "192.0.2.3"), s.set("d", "MX", 60, "10 x.elsewhere.test."),
	)
	s.sync(t, want)
	for _, set := range want {
		s.Damage(t, s.zone, set)
		if got, _ := s.observe(t).Content.Get(set.Key); got.Equal(set) {
			t.Errorf("%s: the damage is not seen", set)
		}
		s.sync(t, want)
	}
}

// testForeign has values of somebody else: they are seen, stay, and count as nobody's of ours.
func testForeign(t *testing.T, s suite) {
	foreign := s.set("x", "A", 60, "192.0.2.9")
	s.PutForeign(t, s.zone, foreign)
	want := MapOf(s.set("a", "A", 60, "192.0.2.1"))
	s.sync(t, want)
	seen := s.observe(t)
	if got, ok := seen.Content.Get(foreign.Key); !ok || seen.Ours(foreign.Key) || !slices.Equal(got.Rdata, foreign.Rdata) {
		t.Errorf("foreign data seen: %s, ours %t", got, seen.Ours(foreign.Key))
	}
	s.sync(t, MapOf())
	s.isGone(t, want)
	s.check(t, MapOf(foreign))
}

// testOtherOwner has another owner with values in the same zone.
func testOtherOwner(t *testing.T, s suite) {
	theirs := MapOf(s.set("theirs", "A", 60, "192.0.2.1"), s.set("both", "CNAME", 60, "theirs.test."))
	if refused, _, err := Sync(t.Context(), s.Other, s.zone, theirs); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	want := MapOf(s.set("ours", "A", 60, "192.0.2.2"), s.set("both", "CNAME", 60, "ours.test."))
	refused, _, err := Sync(t.Context(), s.Backend, s.zone, want)
	if err != nil || len(refused) != 1 || refused[s.set("both", "CNAME", 0).Key] == nil {
		t.Errorf("refused %v, error %v", refused, err)
	}
	s.check(t, theirs)
	s.check(t, MapOf(s.set("ours", "A", 60, "192.0.2.2")))
	s.sync(t, MapOf())
	s.check(t, theirs)
}

// testWatch calls for a look at the beginning and at each change.
func testWatch(t *testing.T, s suite) {
	calls := make(chan struct{}, 100)
	go s.Backend.Watch(t.Context(), s.zone, func() { calls <- struct{}{} })
	await(t, calls)
	for i := range 3 {
		s.PutForeign(t, s.zone, s.set(fmt.Sprintf("w%d", i), "A", 60, "192.0.2.1"))
		await(t, calls)
	}
}

func await(t *testing.T, calls <-chan struct{}) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(time.Minute):
		t.Fatal("nobody called for a look")
	}
}

// testMany has 10,000 RRsets: created, one of them changed, all deleted.
func testMany(t *testing.T, s suite) {
	want := ManySets(s.zone, 10_000)
	if refused, _, err := Sync(t.Context(), s.Backend, s.zone, want); err != nil || len(refused) > 0 {
		t.Fatal(len(refused), err)
	}
	one := s.set("h00042", "A", 60, "192.0.2.42")
	want[one.Key] = one
	if refused, _, err := Sync(t.Context(), s.Backend, s.zone, want); err != nil || len(refused) > 0 {
		t.Fatal(len(refused), err)
	}
	s.check(t, MapOf(one, want[s.set("h09999", "A", 0).Key]))
	s.sync(t, MapOf())
	if n := s.observe(t).Content.Len(); n != 0 {
		t.Errorf("%d RRsets are left", n)
	}
}

// ManySets makes n RRsets of one address each.
func ManySets(zone string, n int) plan.Map {
	sets := plan.Map{}
	for i := range n {
		key := rrset.Key{Name: fmt.Sprintf("h%05d.%s", i, zone), Type: dns.TypeA}
		sets[key] = rrset.New(key, 60, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
	}
	return sets
}

// testRestart writes while the servers are away and again when they are back, and is called for a look by a watch that was cut.
func testRestart(t *testing.T, s suite) {
	want := MapOf(s.set("a", "A", 60, "192.0.2.1"))
	s.sync(t, want)
	calls := make(chan struct{}, 1000)
	go s.Backend.Watch(t.Context(), s.zone, func() { calls <- struct{}{} })
	await(t, calls)
	s.Restart(t, func() {
		var failure *host.Error
		if _, err := s.Backend.Observe(t.Context(), s.zone); !errors.As(err, &failure) || !failure.Temporary {
			t.Errorf("while it is away: %v", err)
		}
	})
	s.check(t, want)
	want = MapOf(s.set("a", "A", 60, "192.0.2.2"))
	s.sync(t, want)
	await(t, calls)
}
