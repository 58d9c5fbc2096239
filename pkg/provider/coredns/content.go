package coredns

import (
	"iter"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/parallel"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// content is what CoreDNS answers with from a snapshot: the RRsets of which there is a value. It is a plan.Content.
type content struct {
	sets names
	size int
	// ours are the RRsets of which at least one value is ours, as its values say.
	ours names
}

// newContent returns what CoreDNS answers for each RRset that has a value. An RRset of ours of which a value is missing, changed or
// too many has the TTL 0, so that it differs from whatever is desired.
func newContent(s *snapshot) *content {
	size := len(s.entries)
	c := &content{sets: make(names, size), ours: make(names, size)}
	ours, foreign := make(map[rrset.Key][]entry, size), map[rrset.Key]bool{}
	keys := make([]rrset.Key, size)
	parallel.ForRange(size, func(i int) { keys[i] = s.keyOf(s.entries[i]) })
	for i, e := range s.entries {
		switch key := keys[i]; {
		case s.isOurs(e):
			ours[key] = append(ours[key], e)
		case e.broken || s.isOfZoneBelow(e): // What is broken is seen where it keeps ours from being answered.
		default:
			s.addForeignKeys(foreign, key)
		}
	}
	for key, entries := range ours {
		c.ours[key.Name] = append(c.ours[key.Name], decode(key, entries))
	}
	damaged := s.damaged(c.ours, ours)
	for _, answered := range s.answerAll(c.ours, len(ours)) {
		if damaged[answered.Key] {
			answered.TTL = 0
		}
		c.add(answered)
		delete(foreign, answered.Key)
	}
	for key := range foreign {
		if answered, ok := s.answer(key); ok {
			c.add(answered)
		}
	}
	return c
}

// answerAll returns what CoreDNS answers for RRsets, so many. One that it does not answer with has the TTL 0.
func (s *snapshot) answerAll(asked names, count int) []rrset.RRset {
	all := make([]rrset.RRset, 0, count)
	for _, sets := range asked {
		all = append(all, sets...)
	}
	parallel.ForRange(len(all), func(i int) {
		if answered, ok := s.answer(all[i].Key); ok {
			all[i] = answered
		} else {
			all[i].TTL = 0
		}
	})
	return all
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

// decode returns the RRset of which all our values are given.
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

// damaged returns the RRsets of ours whose values are not those that encode makes of them.
func (s *snapshot) damaged(sets names, entries map[rrset.Key][]entry) map[rrset.Key]bool {
	damaged := map[rrset.Key]bool{}
	expected := s.encode(sets)
	for key, some := range entries {
		for _, e := range some {
			if v, ok := expected[e.key]; !ok || v != e.value {
				damaged[key] = true
			}
			delete(expected, e.key)
		}
	}
	for key, v := range expected { // missing
		e := entry{key: key, value: v}
		damaged[s.keyOf(e)] = true
	}
	return damaged
}

// Get implements plan.Content.
func (c *content) Get(key rrset.Key) (rrset.RRset, bool) { return c.sets.get(key.Name, key.Type) }

// All implements plan.Content.
func (c *content) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for _, sets := range c.sets {
			for _, set := range sets {
				if !yield(set) {
					return
				}
			}
		}
	}
}

// At implements plan.Content.
func (c *content) At(name string) iter.Seq[rrset.RRset] { return slices.Values(c.sets[name]) }

// Len implements plan.Content.
func (c *content) Len() int { return c.size }
