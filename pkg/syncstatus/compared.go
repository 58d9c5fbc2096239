package syncstatus

import (
	"iter"
	"net/netip"
	"slices"
	gosync "sync"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// comparison is one server's content set against all that is declared in a zone. It is immutable. What follows from it by
// other content or another declaration costs what changed in between.
type comparison struct {
	desired *source.Zone
	pending pending
	mirror  *observe.Mirror

	// off are the RRsets that the server does not hold as it should; those that it should not hold any more are among them.
	off snapshot.Map[rrset.Key, struct{}]
	counts
	// shown are the first of off.
	shown []rrset.Key
	// cuts counts the delegations on the server that nobody declares.
	cuts int
}

// counts are RRsets of a server, or changes of them: declared of those in off are declared, missing are not there at all,
// waiting are pending; foreign are RRsets on the server that nobody declares.
type counts struct{ declared, missing, waiting, foreign int }

func (c *counts) add(o counts, sign int) {
	c.declared += sign * o.declared
	c.missing += sign * o.missing
	c.waiting += sign * o.waiting
	c.foreign += sign * o.foreign
}

// compareAll makes a comparison from scratch.
func compareAll(d *Declared, m *observe.Mirror) *comparison {
	c := &comparison{desired: d.desired, pending: d.pending, mirror: m}
	for have := range m.All() {
		if have.Type == dns.TypeNS {
			if _, found := foreignCut(d.desired, m, have.Name); found {
				c.cuts++
			}
		}
	}
	e := snapshot.New[rrset.Key, struct{}](byName).Edit()
	for want := range d.desired.All() {
		if c.isOff(want.Key) {
			e.Put(want.Key, struct{}{})
			c.count(want.Key, 1)
		}
	}
	for have := range m.All() {
		switch {
		case c.isForeign(have.Key):
			c.foreign++
		case c.isOff(have.Key):
			if _, counted := e.Get(have.Key); !counted {
				e.Put(have.Key, struct{}{})
				c.count(have.Key, 1)
			}
		}
	}
	c.off = e.Map()
	c.show()
	return c
}

// next is the comparison with what is declared, and what the server holds, by now.
func (c *comparison) next(d *Declared, m *observe.Mirror) *comparison {
	n := &comparison{desired: d.desired, pending: d.pending, mirror: m, counts: c.counts, cuts: c.cuts}
	e := c.off.Edit()
	done := map[string]bool{}
	for name := range n.changedNames(c) {
		if done[name] {
			continue
		}
		done[name] = true
		if cutChanged(name, c.desired, c.mirror, d.desired, m) {
			return compareAll(d, m) // It matters to all that is below.
		}
		was, _ := c.at(name)
		n.add(was, -1)
		for k := range c.off.Near(rrset.Key{Name: name}) {
			if k.Name == name {
				e.Delete(k)
			}
		}
		is, off := n.at(name)
		n.add(is, 1)
		for _, k := range off {
			e.Put(k, struct{}{})
		}
	}
	n.off = e.Map()
	n.show()
	return n
}

// changedNames yields the owner names at which c may differ from an older comparison; some more than once.
func (c *comparison) changedNames(old *comparison) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range declaredNames(c.desired, old.desired, c.pending, old.pending) {
			if !yield(name) {
				return
			}
		}
		for name := range c.mirror.ChangedNames(old.mirror) {
			if !yield(name) {
				return
			}
		}
	}
}

// at compares one owner name.
func (c *comparison) at(name string) (counts, []rrset.Key) {
	here := comparison{desired: c.desired, pending: c.pending, mirror: c.mirror, cuts: c.cuts}
	var off []rrset.Key
	add := func(k rrset.Key) {
		switch {
		case here.isForeign(k):
			here.foreign++
		case here.isOff(k) && !slices.Contains(off, k):
			off = append(off, k)
			here.count(k, 1)
		}
	}
	for s := range c.desired.At(name) {
		add(s.Key)
	}
	for s := range c.mirror.At(name) {
		add(s.Key)
	}
	return here.counts, off
}

// isForeign tells whether nobody declares an RRset that the server holds, and nobody is about to remove it.
func (c *comparison) isForeign(k rrset.Key) bool {
	_, wanted := c.desired.Get(k)
	_, waits := c.pending.Get(k)
	return !wanted && !waits && !rrset.Maintained(k.Type)
}

// isOff tells whether the server holds something else than it should, or hides it.
func (c *comparison) isOff(k rrset.Key) bool {
	want, wanted := c.desired.Get(k)
	if !wanted && rrset.Maintained(k.Type) {
		return false
	}
	if have, _ := c.mirror.Get(k); !same(want, have) {
		return true
	}
	if !wanted || c.cuts == 0 {
		return false
	}
	_, hidden := hiding(c.desired, c.mirror, k)
	return hidden
}

// count counts an RRset in off.
func (c *comparison) count(k rrset.Key, by int) {
	if _, wanted := c.desired.Get(k); wanted {
		c.declared += by
	}
	if _, held := c.mirror.Get(k); !held {
		c.missing += by
	}
	if _, waits := c.pending.Get(k); waits {
		c.waiting += by
	}
}

// show picks the RRsets that a row shows.
func (c *comparison) show() {
	for k := range c.off.All() {
		c.shown = rrset.KeepFirst(c.shown, maxObserved, k)
	}
}

// comparisons keeps the last comparison of each server of a zone, so that the next one costs what changed. What it gives
// depends on its arguments alone. It is safe for concurrent use.
type comparisons struct {
	mu   gosync.Mutex
	last map[serverID]*comparison
	// union is the number of RRsets in off of any of these.
	of    []*comparison
	union int
}

type serverID struct {
	pod  string
	addr netip.AddrPort
}

// take gives the comparison of each server; nil for one without a mirror.
func (c *comparisons) take(d *Declared, servers []server) []*comparison {
	all := make([]*comparison, len(servers))
	next := make(map[serverID]*comparison, len(servers))
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	for i, s := range servers {
		was := last[s.id]
		switch {
		case s.mirror == nil:
			if was != nil {
				next[s.id] = was
			}
			continue
		case was == nil:
			all[i] = compareAll(d, s.mirror)
		case was.desired != d.desired || was.mirror != s.mirror || !samePending(was.pending, d.pending):
			all[i] = was.next(d, s.mirror)
		default:
			all[i] = was
		}
		next[s.id] = all[i]
	}
	c.mu.Lock()
	c.last = next
	c.mu.Unlock()
	return all
}

func samePending(a, b pending) bool {
	for range snapshot.Diff(a, b, sameObjects) {
		return false
	}
	return true
}

// offAnywhere counts the RRsets that any of the servers does not hold as it should.
func (c *comparisons) offAnywhere(all []*comparison) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != nil && slices.Equal(c.of, all) {
		return c.union
	}
	c.of, c.union = slices.Clone(all), 0
	for i, one := range all {
		if one == nil {
			continue
		}
		for k := range one.off.All() {
			if !slices.ContainsFunc(all[:i], func(o *comparison) bool {
				if o == nil {
					return false
				}
				_, counted := o.off.Get(k)
				return counted
			}) {
				c.union++
			}
		}
	}
	return c.union
}
