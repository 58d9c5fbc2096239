package coredns

import (
	"iter"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// content is what CoreDNS answers with from a snapshot: the RRsets of which there is a value. It is a plan.Content.
type content struct {
	sets names
	size int
	// ours are the RRsets of which at least one value is ours, as its values say.
	ours names
}

// ourSet is an RRset of ours with its values.
type ourSet struct {
	rrset.RRset
	entries []entry
}

// newContent computes what CoreDNS answers for each RRset that has a value. An RRset of ours of which a value is missing, changed or too
// many has the TTL 0, so that it differs from whatever is desired.
func newContent(s *snapshot) (*content, error) {
	ours, foreign := s.groupEntries()
	c := &content{sets: make(names, len(ours)), ours: make(names, len(ours))}
	parallel.ForRange(len(ours), func(i int) { ours[i].RRset = decode(ours[i].Key, ours[i].entries) })
	for _, of := range ours {
		c.ours[of.Name] = append(c.ours[of.Name], of.RRset)
	}
	answers := make([]rrset.RRset, len(ours))
	parallel.ForRange(len(ours), func(i int) { answers[i] = s.answerOurs(c.ours, ours[i]) })
	for _, answered := range answers {
		c.add(answered)
		delete(foreign, answered.Key)
	}
	for key := range foreign {
		if answered, ok := s.answer(key); ok {
			c.add(answered)
		}
	}
	if err := s.failed.Load(); err != nil {
		return nil, *err
	}
	return c, nil
}

// groupEntries groups values by RRset: ours, which are still to be decoded, and the keys of those of others.
func (s *snapshot) groupEntries() (ours []ourSet, foreign map[rrset.Key]bool) {
	size := len(s.entries)
	keys := make([]rrset.Key, size)
	parallel.ForRange(size, func(i int) { keys[i] = s.keyOf(s.entries[i]) })
	known := make(map[rrset.Key]int, size) // indexes of ours
	ours, foreign = make([]ourSet, 0, size), map[rrset.Key]bool{}
	for i, key := range keys {
		switch e := &s.entries[i]; {
		case s.isOurs(*e):
			if n, again := known[key]; again {
				ours[n].entries = append(ours[n].entries, *e)
				continue
			}
			known[key] = len(ours)
			ours = append(ours, ourSet{rrset.RRset{Key: key}, s.entries[i : i+1 : i+1]})
		case e.broken || s.isOfZoneBelow(*e): // What is broken is seen where it keeps ours from being answered.
		default:
			s.addForeignKeys(foreign, key)
		}
	}
	return ours, foreign
}

// answerOurs is what CoreDNS answers for one RRset of ours. The TTL is 0 if it does not answer with it, or the values are not those that
// encode makes of it.
func (s *snapshot) answerOurs(all names, of ourSet) rrset.RRset {
	answered, ok := s.answer(of.Key)
	if !ok {
		answered = of.RRset
	}
	if !ok || s.isDamaged(all, of) {
		answered.TTL = 0
	}
	return answered
}

// isDamaged reports whether the values of an RRset of ours are not those that encode makes of it.
func (s *snapshot) isDamaged(all names, of ourSet) bool {
	expected := s.encodeSet(all, of.RRset)
	slices.SortFunc(expected, compareByKey)
	return !slices.EqualFunc(of.entries, expected, func(e entry, v keyValue) bool { return e.key == v.key && e.value == v.value })
}

func (c *content) add(set rrset.RRset) {
	c.sets[set.Name] = append(c.sets[set.Name], set)
	c.size++
}

// addForeignKeys adds the RRsets that a value of others is of: it answers for its own key and, as the last part of that may be no
// label, for the name above.
func (s *snapshot) addForeignKeys(foreign map[rrset.Key]bool, key rrset.Key) {
	above := rrset.ParentName(key.Name)
	foreign[rrset.Key{Name: s.ownerOf(key.Name), Type: key.Type}] = true
	if rrset.IsSubdomain(above, s.zone) && !isExact(key.Type) {
		foreign[rrset.Key{Name: s.ownerOf(above), Type: key.Type}] = true
	}
}

// decode makes the RRset of which all our values are given.
func decode(key rrset.Key, entries []entry) rrset.RRset {
	a := answer{set: rrset.RRset{Key: key}}
	switch key.Type {
	case dns.TypeMX:
		a.addMail(entries)
	case dns.TypeSRV:
		a.addServices(entries)
	case dns.TypeTXT:
		for _, e := range entries {
			a.add(e.value.TTL, rdataOfText(e.value.Text))
		}
	default:
		for _, e := range entries {
			a.add(e.value.TTL, canonical(key, e.value.Host))
		}
	}
	readable := slices.DeleteFunc(a.set.Rdata, func(rdata string) bool {
		_, err := rrset.Parse(key, rdata)
		return err != nil
	})
	return rrset.New(key, a.set.TTL, readable...)
}

// Get implements plan.Content.
func (c *content) Get(key rrset.Key) (rrset.RRset, bool) { return c.sets.get(key.Name, key.Type) }

// All implements plan.Content.
func (c *content) All() iter.Seq[rrset.RRset] {
	return seq.FlatMap(maps.Values(c.sets), slices.Values[[]rrset.RRset])
}

// At implements plan.Content.
func (c *content) At(name string) iter.Seq[rrset.RRset] { return slices.Values(c.sets[name]) }

// Len implements plan.Content.
func (c *content) Len() int { return c.size }
