package byquery

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

const zone = "example.com."

// server answers from memory and counts questions. What it does on a real server is part of the conformance of servers.
type server struct {
	serial uint32
	sets   plan.Map
	asked  []string
	// between runs after the first question for an RRset.
	between func()
	silent  string
}

func (s *server) soa() rrset.SOA { return rrset.SOA{Serial: s.serial} }

func (s *server) ask(_ context.Context, questions ...observe.Question) observe.Observation {
	var sets []rrset.RRset
	for _, q := range questions {
		s.asked = append(s.asked, q.Name)
		set := s.sets[q.Key]
		set.Key = q.Key
		sets = append(sets, set)
	}
	if s.between != nil && len(questions) > 0 {
		s.between()
		s.between = nil
	}
	at := time.Now()
	seen := observe.Observation{At: at.Add(time.Millisecond), Authoritative: true, SOA: s.soa(), Serial: s.serial}
	seen.Mirror = observe.NewPartialMirror(zone, s.soa(), at, sets...)
	if len(sets) > 0 && sets[0].Name == s.silent {
		seen.Err = &wire.Error{Op: "query", Server: "192.0.2.1:53"}
	}
	return seen
}

func address(name, value string) rrset.RRset {
	return rrset.New(rrset.Key{Name: name + "." + zone, Type: dns.TypeA}, 60, value)
}

func contentOf(sets ...rrset.RRset) plan.Map {
	m := plan.Map{}
	for _, set := range sets {
		m[set.Key] = set
	}
	return m
}

func keysOf(m plan.Map) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// read reads what is wanted, and returns the names that were asked for.
func read(t *testing.T, c *Content, s *server, want plan.Map) (observe.Observation, []string) {
	t.Helper()
	s.asked = nil
	seen := c.Read(t.Context(), zone, s.ask, keysOf(want), want)
	if seen.Err != nil {
		t.Fatal(seen.Err)
	}
	slices.Sort(s.asked)
	return seen, s.asked
}

func TestOnlyWhatIsNotKnownIsAsked(t *testing.T) {
	a, b, n := address("a", "192.0.2.1"), address("b", "192.0.2.2"), address("n", "192.0.2.3")
	s := &server{serial: 1, sets: contentOf(a, b)}
	c := &Content{}
	want := contentOf(a, b)
	all := []string{a.Name, b.Name}
	check := func(what string, names []string) {
		t.Helper()
		seen, asked := read(t, c, s, want)
		if diff := cmp.Diff(names, asked); diff != "" {
			t.Errorf("%s (-want +asked):\n%s", what, diff)
		}
		for key, set := range s.sets {
			if have, _ := seen.Mirror.Get(key); want[key].Rdata != nil && !have.Equal(set) {
				t.Errorf("%s: the mirror has %v", what, have)
			}
		}
	}
	check("at first", all)
	check("nothing has changed", nil)
	want = contentOf(a, b, n)
	check("one more is declared", []string{n.Name})
	before := s.soa()
	s.serial, s.sets = 5, contentOf(a, b, n)
	c.Written(before, s.soa(), keysOf(contentOf(n)))
	check("our update", []string{n.Name})
	s.serial = 6
	check("somebody else's", []string{a.Name, b.Name, n.Name})
	c.Written(rrset.SOA{Serial: 5}, rrset.SOA{Serial: 7}, keysOf(nil))
	s.serial = 7
	check("an update of another version", []string{a.Name, b.Name, n.Name})
	c.Forget()
	check("after it was forgotten", []string{a.Name, b.Name, n.Name})
}

// After an update of ours, what a wildcard may have been answered for is asked again, and nothing else.
func TestWhatAWildcardMayAnswerIsAskedAgain(t *testing.T) {
	text := func(name string) rrset.RRset {
		return rrset.New(rrset.Key{Name: name + "." + zone, Type: dns.TypeTXT}, 60, `"x"`)
	}
	want := contentOf(address("a", "192.0.2.1"), address("b.a", "192.0.2.1"), address("c.b.a", "192.0.2.1"), address("c", "192.0.2.1"),
		rrset.New(rrset.Key{Name: zone, Type: dns.TypeA}, 60, "192.0.2.1"))
	for name, c := range map[string]struct {
		changed rrset.RRset
		asked   []string
	}{
		"another type":          {text("c"), []string{"c.example.com."}},
		"a name below others":   {text("d.b.a"), []string{"a.example.com.", "b.a.example.com."}},
		"a wildcard":            {address("*.a", "192.0.2.1"), []string{"a.example.com.", "b.a.example.com.", "c.b.a.example.com."}},
		"a wildcard of nothing": {address("*.c", "192.0.2.1"), []string{"c.example.com."}},
		"the apex":              {rrset.New(rrset.Key{Name: zone, Type: dns.TypeTXT}, 60, `"x"`), nil},
	} {
		s, known := &server{serial: 1, sets: want}, &Content{}
		read(t, known, s, want)
		before := s.soa()
		s.serial = 2
		known.Written(before, s.soa(), keysOf(contentOf(c.changed)))
		_, asked := read(t, known, s, want)
		if diff := cmp.Diff(c.asked, asked); diff != "" {
			t.Errorf("%s (-want +asked):\n%s", name, diff)
		}
	}
}

// Whoever relies on the SOA of a zone that changes meanwhile is to be refused.
func TestAZoneThatChangesWhileItIsRead(t *testing.T) {
	a := address("a", "192.0.2.1")
	s := &server{serial: 1, sets: contentOf(a)}
	s.between = func() { s.serial = 2 }
	c, want := &Content{}, contentOf(a)
	if seen, _ := read(t, c, s, want); seen.SOA.Serial != 1 || seen.Serial != 1 || seen.Mirror.SOA.Serial != 1 {
		t.Errorf("serial %d", seen.Serial)
	}
	if seen, asked := read(t, c, s, want); seen.Serial != 2 || len(asked) != 1 {
		t.Errorf("serial %d, asked %v", seen.Serial, asked)
	}
}

func TestAQuestionWithoutAnAnswer(t *testing.T) {
	a := address("a", "192.0.2.1")
	s := &server{serial: 1, sets: contentOf(a), silent: a.Name}
	c, want := &Content{}, contentOf(a)
	if seen := c.Read(t.Context(), zone, s.ask, keysOf(want), want); seen.Err == nil || seen.Mirror != nil && seen.Mirror.Len() > 0 {
		t.Errorf("%+v", seen)
	}
	if c.Knows(a.Key) {
		t.Error("it is taken to be known")
	}
}

func TestWildcards(t *testing.T) {
	for name, want := range map[string][]string{
		"a.b.example.com.": {"*.b.example.com.", "*.example.com."},
		"a.example.com.":   {"*.example.com."},
		"*.example.com.":   nil,
		"*.b.example.com.": {"*.example.com."},
		"example.com.":     nil,
	} {
		var got []string
		for _, key := range wildcardsAbove(zone, rrset.Key{Name: name, Type: dns.TypeA}) {
			got = append(got, key.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// What differs from what is wanted, and is what a wildcard has, is answered and not there.
	data := address("*", "192.0.2.9")
	www := rrset.RRset{Key: address("www", "").Key, TTL: data.TTL, Rdata: data.Rdata}
	s := &server{serial: 1, sets: contentOf(data, www)}
	for i, want := range []rrset.RRset{address("www", "192.0.2.1"), www} {
		c := &Content{}
		seen, _ := read(t, c, s, contentOf(want))
		if _, there := seen.Mirror.Get(www.Key); there != (i == 1) {
			t.Errorf("case %d: there is %t", i, there)
		}
	}
}
