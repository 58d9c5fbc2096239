package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const zone = "example.test."

func TestNamesOfLedgers(t *testing.T) {
	long := strings.Repeat("a.", 118)
	for name, record := range map[string]string{
		"example.test.":               "_lockstep.example.test.",
		"www.example.test.":           "www._lockstep.example.test.",
		"*.example.test.":             "_lockstep-any._lockstep.example.test.",
		"*.apps.example.test.":        "_lockstep-any.apps._lockstep.example.test.",
		`a\.b.example.test.`:          `a\.b._lockstep.example.test.`,
		"_sip._tcp.example.test.":     "_sip._tcp._lockstep.example.test.",
		"_lockstep.example.test.":     "",
		"x._lockstep.example.test.":   "",
		"_lockstep-any.example.test.": "",
		"elsewhere.test.":             "",
		long + "example.test.":        "",
	} {
		got, err := RecordName(zone, name)
		if got != record || (err == nil) != (record != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if record == "" {
			continue
		}
		if back, ok := DataName(zone, record); !ok || back != name {
			t.Errorf("%s: %q leads back to %q", name, record, back)
		}
		if !IsBelow(zone, record) || IsBelow(zone, name) {
			t.Errorf("%s and %s are taken for each other", name, record)
		}
	}
	for _, record := range []string{"www.example.test.", "a._lockstep._lockstep.example.test.", "_lockstep.test."} {
		if name, ok := DataName(zone, record); ok {
			t.Errorf("%s is the ledger of %s", record, name)
		}
	}
	if record, err := RecordName(".", "com."); record != "com._lockstep." || err != nil {
		t.Errorf("below the root: %q, %v", record, err)
	}
}

func TestEntries(t *testing.T) {
	e := Entry{Owner: "cluster-a/dns/corp"}
	for n := range 30 {
		e.claim(dns.TypeA, 60, HashOf(dns.TypeA, fmt.Sprintf("192.0.2.%d", n)))
	}
	e.claim(dns.TypeCNAME, 300, HashOf(dns.TypeCNAME, "a.test."))
	e.claim(65280, rrset.MaxTTL, HashOf(65280, `\# 1 00`))
	got, ok := ParseEntry(e.Rdata())
	if diff := cmp.Diff(e, got); !ok || diff != "" {
		t.Errorf("%t %s", ok, diff)
	}
	if canonical, err := rrset.Parse(rrset.Key{Name: ".", Type: dns.TypeTXT}, e.Rdata()); err != nil || canonical != e.Rdata() {
		t.Errorf("the canonical form is %q, %v", canonical, err)
	}
	h := `"A 60 ` + strings.Repeat("A", hashText) + `"`
	for _, rdata := range []string{
		``, `"`, `""`, `"x"`, `lockstep1 a`, `"lockstep2 a"`, `"lockstep1 "`, `"lockstep1 A"`, `"lockstep1 a b"`, `"lockstep1 a\"b"`, `"lockstep1 a\010"`,
		`"lockstep1 ` + strings.Repeat("a", maxOwner+1) + `"`, `"lockstep1 a" ""`, `"lockstep1 a" "A"`, `"lockstep1 a" "A 60"`, `"lockstep1 a" "A 60 "`,
		`"lockstep1 a" "A -1 AAAAAAAAAAAAAAAA"`, `"lockstep1 a" "A 2147483648 AAAAAAAAAAAAAAAA"`, `"lockstep1 a" "NOTYPE 60 AAAAAAAAAAAAAAAA"`,
		`"lockstep1 a" "A 60 AAAAAAAAAAAAAAA="`, `"lockstep1 a" "A 60 AAAAAAAAAAAAAAAA" "x"`, `"lockstep1 a" ` + strings.Repeat(h+" ", maxValues) + h,
	} {
		if e, ok := ParseEntry(rdata); ok {
			t.Errorf("%.80q is taken for %+v", rdata, e)
		}
	}
	if !IsOwner(OwnerName(strings.Repeat("a", 63), strings.Repeat("b", 63), strings.Repeat("c", 253))) {
		t.Error("an owner with long names has none")
	}
	if HashOf(dns.TypeA, "192.0.2.1") == HashOf(dns.TypeTXT, "192.0.2.1") || HashOf(dns.TypeMX, "10 a.test.") == HashOf(dns.TypeMX, "20 a.test.") {
		t.Error("different values have one hash")
	}
}

// FuzzEntry: whatever somebody writes into a ledger, it is read within bounds, and an entry means the same when it is written again.
func FuzzEntry(f *testing.F) {
	f.Add(`"lockstep1 a/b/c" "A 60 AAAAAAAAAAAAAAAA"`)
	f.Fuzz(func(t *testing.T, rdata string) {
		e, ok := ParseEntry(rdata)
		if !ok {
			return
		}
		if !IsOwner(e.Owner) || len(e.Claims) > maxClaims {
			t.Errorf("%q is taken for %+v", rdata, e)
		}
		for _, c := range e.Claims {
			if len(c.Values) > maxValues || c.TTL > rrset.MaxTTL {
				t.Errorf("%q is taken for %+v", rdata, e)
			}
		}
		if again, ok := ParseEntry(e.Rdata()); !ok || cmp.Diff(e, again) != "" {
			t.Errorf("%q comes back as %+v", e.Rdata(), again)
		}
	})
}

// server holds the content of a zone, and takes updates as RFC 2136 has them.
type server struct{ plan.Map }

// update applies changes, a group at a time, if what each changes is as it was read. The TTL is no part of that.
func (s server) update(changes plan.Changes) (conflicts int) {
	type group struct {
		was map[rrset.Key][]string
		set []rrset.RRset
	}
	groups := map[string]*group{}
	at := func(key rrset.Key) *group {
		name := Group(zone, key)
		if groups[name] == nil {
			groups[name] = &group{was: map[rrset.Key][]string{}}
		}
		return groups[name]
	}
	for _, set := range changes.Create {
		at(set.Key).was[set.Key], at(set.Key).set = nil, append(at(set.Key).set, set)
	}
	for i, set := range changes.UpdateNew {
		at(set.Key).was[set.Key], at(set.Key).set = changes.UpdateOld[i].Rdata, append(at(set.Key).set, set)
	}
	for _, set := range changes.Delete {
		at(set.Key).was[set.Key], at(set.Key).set = set.Rdata, append(at(set.Key).set, rrset.RRset{Key: set.Key})
	}
	for _, g := range groups {
		asRead := true
		for key, rdata := range g.was {
			asRead = asRead && slices.Equal(s.Map[key].Rdata, rdata)
		}
		if !asRead {
			conflicts++
			continue
		}
		for _, set := range g.set {
			if s.Map[set.Key] = set; len(set.Rdata) == 0 {
				delete(s.Map, set.Key)
			}
		}
	}
	return conflicts
}

// owner is one of those who write to a server.
type owner struct {
	name     string
	declared plan.Map
}

func (o owner) view(read plan.Map) View {
	return View{Zone: zone, Owner: o.name, Declared: o.declared, Observed: read}
}

// changes are what the owner wants to change, having read this content.
func (o owner) changes(read plan.Map) plan.Changes {
	v := o.view(read)
	return plan.Calculate(v, read, v.IsDeletable, rrset.SOA{}, rrset.SOA{})
}

// work has the owner read and update until nothing is to be done.
func (o owner) work(t *testing.T, s server) {
	t.Helper()
	for range 3 {
		changes := o.changes(s.Map)
		if !changes.HasChanges() {
			return
		}
		s.update(changes)
	}
	t.Fatalf("%s does not rest: %+v", o.name, o.changes(s.Map))
}

func set(name, rrtype string, ttl uint32, rdata ...string) rrset.RRset {
	return rrset.New(rrset.Key{Name: name + "." + zone, Type: dns.StringToType[rrtype]}, ttl, rdata...)
}

func mapOf(sets ...rrset.RRset) plan.Map {
	m := plan.Map{}
	for _, s := range sets {
		m[s.Key] = s
	}
	return m
}

// data is a content without ledgers.
func data(m plan.Map) plan.Map {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(key rrset.Key, _ rrset.RRset) bool { return IsBelow(zone, key.Name) })
	return m
}

func (s server) is(t *testing.T, when string, sets ...rrset.RRset) {
	t.Helper()
	if diff := cmp.Diff(mapOf(sets...), data(s.Map)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestOwnersOfOneName(t *testing.T) {
	foreign := set("www", "A", 900, "192.0.2.99")
	other := set("www", "TXT", 900, `"theirs"`)
	s := server{mapOf(foreign, other)}
	a, b := owner{"a", mapOf(set("www", "A", 300, "192.0.2.1", "192.0.2.3"))}, owner{"b", mapOf(set("www", "A", 60, "192.0.2.2", "192.0.2.3"))}
	a.work(t, s)
	s.is(t, "the first owner", set("www", "A", 300, "192.0.2.1", "192.0.2.3", "192.0.2.99"), other)
	b.work(t, s)
	both := set("www", "A", 60, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.99")
	s.is(t, "the second owner", both, other)
	for _, o := range []owner{a, b} {
		if changes := o.changes(s.Map); changes.HasChanges() {
			t.Errorf("%s does not rest: %+v", o.name, changes)
		}
	}
	if own, _ := a.view(s.Map).Own().Get(both.Key); !slices.Equal(own.Rdata, []string{"192.0.2.1", "192.0.2.3"}) {
		t.Errorf("the first owner's are %v", own)
	}
	a.declared = mapOf(set("www", "A", 300, "192.0.2.4", "192.0.2.3"))
	a.work(t, s)
	s.is(t, "a value changes", set("www", "A", 60, "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.99"), other)
	b.declared = plan.Map{}
	b.work(t, s)
	a.work(t, s)
	s.is(t, "the second leaves", set("www", "A", 300, "192.0.2.3", "192.0.2.4", "192.0.2.99"), other)
	a.declared = plan.Map{}
	a.work(t, s)
	s.is(t, "the first leaves", set("www", "A", 300, "192.0.2.99"), other)
	if len(s.Map) != 2 {
		t.Errorf("ledgers are left: %v", s.Map)
	}
}

// Whoever is first at a name keeps it from what excludes its data; the other learns who that is.
func TestOwnersOfAnAlias(t *testing.T) {
	alias, address := set("www", "CNAME", 300, "a.test."), set("www", "A", 300, "192.0.2.1")
	for name, first := range map[string]rrset.RRset{"an alias": alias, "an address": address} {
		second := []rrset.RRset{set("www", "CNAME", 300, "b.test.")}
		if first.Type == dns.TypeCNAME {
			second = append(second, address)
		}
		for _, want := range second {
			s := server{plan.Map{}}
			a, b := owner{"cluster-a", mapOf(first)}, owner{"cluster-b", mapOf(want)}
			a.work(t, s)
			if changes := b.changes(s.Map); changes.HasChanges() {
				t.Errorf("%s, then %s: %+v", name, want, changes)
			}
			blocked := b.view(s.Map).Blocked(want.Name)
			if len(blocked) != 1 || !strings.Contains(blocked[0].Why, "cluster-a ("+rrset.TypeName(first.Type)+")") {
				t.Errorf("%s, then %s: blocked %+v", name, want, blocked)
			}
			a.declared = plan.Map{}
			a.work(t, s)
			b.work(t, s)
			s.is(t, "after the first has left", want)
		}
	}
	s := server{mapOf(set("www", "CNAME", 300, "theirs.test."))}
	b := owner{"b", mapOf(alias)}
	b.work(t, s)
	s.is(t, "an alias of nobody", set("www", "CNAME", 300, "theirs.test."))
	if blocked := b.view(s.Map).Blocked(alias.Name); len(blocked) != 1 || len(blocked[0].Foreign) != 1 || len(s.Map) != 1 {
		t.Errorf("blocked %+v, the server has %v", blocked, s.Map)
	}
	// The same alias may be two owners'.
	s, a := server{plan.Map{}}, owner{"a", mapOf(alias)}
	a.work(t, s)
	b.work(t, s)
	a.declared = plan.Map{}
	a.work(t, s)
	s.is(t, "an alias of two", alias)
	// An owner may turn its alias into an address.
	b.declared = mapOf(address)
	b.work(t, s)
	s.is(t, "an alias becomes an address", address)
}

// What is no entry stays in a ledger as it is, and claims nothing.
func TestOthersWriteIntoALedger(t *testing.T) {
	record, _ := RecordName(zone, "www."+zone)
	garbage := []string{`"lockstep1 b" "A 60"`, `"lockstep9 c" "A 60 AAAAAAAAAAAAAAAA"`, `"v=spf1 -all"`}
	s := server{mapOf(rrset.New(rrset.Key{Name: record, Type: dns.TypeTXT}, 5, garbage...))}
	a := owner{"a", mapOf(set("www", "A", 300, "192.0.2.1"))}
	a.work(t, s)
	s.is(t, "beside garbage", set("www", "A", 300, "192.0.2.1"))
	a.declared = plan.Map{}
	a.work(t, s)
	s.is(t, "after it")
	left := s.Map[rrset.Key{Name: record, Type: dns.TypeTXT}]
	slices.Sort(garbage)
	if !slices.Equal(left.Rdata, garbage) {
		t.Errorf("the ledger is %v", left)
	}
	reserved := owner{"a", mapOf(set("x._lockstep", "TXT", 300, `"x"`))}
	reserved.work(t, s)
	if blocked := reserved.view(s.Map).Blocked("x._lockstep." + zone); len(blocked) != 1 || blocked[0].Why == "" {
		t.Errorf("blocked %+v", blocked)
	}
}

// Owners declare and leave in any order, decide on what they have read some time before, lose replies and start anew. At the end each has its
// values, nothing else has gone, and nobody has anything to do.
func TestRandomInterleavings(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 32))
		names := []string{"n0", "n1", "*"}
		foreign := mapOf(set("n0", "A", 900, "192.0.2.99"), set("n1", "MX", 900, "10 theirs.test."))
		s := server{maps.Clone(foreign)}
		owners := make([]*owner, 3)
		read := make([]plan.Map, len(owners))
		for i := range owners {
			owners[i], read[i] = &owner{name: fmt.Sprintf("cluster-%d", i), declared: plan.Map{}}, maps.Clone(s.Map)
		}
		declare := func(o *owner) {
			o.declared = plan.Map{}
			for _, name := range names {
				switch r.IntN(4) {
				case 0:
					want := set(name, "A", uint32(60*(1+r.IntN(3))), fmt.Sprintf("192.0.2.%d", r.IntN(4)), fmt.Sprintf("192.0.2.%d", r.IntN(4)))
					o.declared[want.Key] = want
					want = set(name, "MX", 300, fmt.Sprintf("10 m%d.test.", r.IntN(3)))
					o.declared[want.Key] = want
				case 1:
					want := set(name, "CNAME", 300, fmt.Sprintf("c%d.test.", r.IntN(2)))
					o.declared[want.Key] = want
				}
			}
		}
		for range 60 {
			i := r.IntN(len(owners))
			switch r.IntN(4) {
			case 0:
				declare(owners[i])
			case 1:
				read[i] = maps.Clone(s.Map)
			default: // It may have read long ago, and never learns what has become of the update.
				s.update(owners[i].changes(read[i]))
			}
		}
		for range 2 * len(owners) {
			for _, o := range owners {
				s.update(o.changes(s.Map))
			}
		}
		want := maps.Clone(foreign)
		for _, o := range owners {
			if changes := o.changes(s.Map); changes.HasChanges() {
				t.Fatalf("seed %d: %s does not rest: %+v", seed, o.name, changes)
			}
			v := o.view(s.Map)
			for key, declared := range o.declared {
				if slices.ContainsFunc(v.Blocked(key.Name), func(c plan.Conflict) bool { return c.Want.Key == key }) {
					continue
				}
				has := s.Map[key]
				for _, rdata := range declared.Rdata {
					if !slices.Contains(has.Rdata, rdata) {
						t.Fatalf("seed %d: %s lacks %s of %s", seed, o.name, rdata, key)
					}
				}
				if has.TTL > declared.TTL {
					t.Fatalf("seed %d: %s has TTL %d, declared %d", seed, key, has.TTL, declared.TTL)
				}
				want[key] = rrset.New(key, has.TTL, slices.Concat(want[key].Rdata, declared.Rdata)...)
			}
		}
		got := data(s.Map)
		for key, set := range got { // Of what is nobody's, the TTL may have been lowered.
			if f, some := foreign[key]; some && slices.Equal(f.Rdata, set.Rdata) {
				set.TTL = f.TTL
				got[key] = set
			}
			if w := want[key]; slices.Equal(w.Rdata, foreign[key].Rdata) {
				w.TTL = foreign[key].TTL
				want[key] = w
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		for _, o := range owners {
			o.declared = plan.Map{}
			o.work(t, s)
		}
		for key, set := range s.Map {
			if !slices.Equal(set.Rdata, foreign[key].Rdata) {
				t.Fatalf("seed %d: all have left, and there is %s", seed, set)
			}
		}
		if len(s.Map) != len(foreign) {
			t.Fatalf("seed %d: foreign data is gone: %v", seed, s.Map)
		}
	}
}

// A Difference that is brought up to date by names and their twins is what one from scratch is.
func TestViewsFollowChanges(t *testing.T) {
	a, b := owner{"a", mapOf(set("www", "A", 300, "192.0.2.1"))}, owner{"b", mapOf(set("www", "A", 60, "192.0.2.2"), set("b", "A", 60, "192.0.2.2"))}
	s := server{plan.Map{}}
	var d plan.Difference
	compare := func(names map[string]struct{}) plan.Changes {
		v := a.view(s.Map)
		all := maps.Clone(names)
		for name := range names {
			if twin := v.Twin(name); twin != "" {
				all[twin] = struct{}{}
			}
		}
		d.Update(maps.Keys(all), v, s.Map, v.IsDeletable)
		return d.Changes(rrset.SOA{}, rrset.SOA{})
	}
	if diff := cmp.Diff(a.changes(s.Map), compare(a.view(s.Map).Names())); diff != "" {
		t.Error(diff)
	}
	b.work(t, s)
	if diff := cmp.Diff(a.changes(s.Map), compare(map[string]struct{}{"www." + zone: {}, "b." + zone: {}})); diff != "" {
		t.Error(diff)
	}
	if count, some := d.Foreign(); count > 0 {
		t.Errorf("what other owners have is nobody's: %v", some)
	}
	a.work(t, s)
	if changes := compare(map[string]struct{}{"www._lockstep." + zone: {}}); changes.HasChanges() {
		t.Errorf("%+v", changes)
	}
}
