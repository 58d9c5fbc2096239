package syncstatus

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/ledger"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// serverComparison is the difference between one server's content and all that is declared in a zone. It is immutable. An
// updated one costs as much as has changed since.
type serverComparison struct {
	desired *source.Zone
	pending pending
	mirror  *observe.Mirror
	answers askedAnswers
	// shared is true if the apex is not the zone object's there, because others write to the zone as well.
	shared bool
	// owner is who claims values there if each writer has its own; empty if not. view is what it sees there.
	owner string
	view  ledger.View

	// off are the RRsets that are out of sync, including those that the server should no longer hold.
	off snapshot.Map[rrset.Key, struct{}]
	rrsetCounts
	// shown are the first of off.
	shown []rrset.Key

	// Of a server that is read by query: what is not known, so many declared RRsets among it, and the time of the oldest answer.
	unknown unknowns
	// unconfirmed is true if the controller has not read all of it in etcd; see confirmUnsigned.
	unconfirmed     bool
	unknownDeclared int
	oldest          time.Time
}

// rrsetCounts counts RRsets of a server: declared, missing and waiting those in off that are declared, missing on the server
// and pending; shadowed those in off that the server holds and nothing in the zone hides; foreign those on the server that
// no object declares, apex those declared that are not the zone object's there.
type rrsetCounts struct{ declared, missing, waiting, shadowed, foreign, apex int }

func (c *rrsetCounts) addSigned(o rrsetCounts, sign int) {
	c.declared += sign * o.declared
	c.missing += sign * o.missing
	c.waiting += sign * o.waiting
	c.shadowed += sign * o.shadowed
	c.foreign += sign * o.foreign
	c.apex += sign * o.apex
}

// compareFully compares from scratch.
func compareFully(d *DesiredState, m *observe.Mirror, answers askedAnswers, shared bool, owner string) *serverComparison {
	c := &serverComparison{desired: d.desired, pending: d.pending, mirror: m, answers: answers, shared: shared, owner: owner, view: viewOf(d.desired, m, owner).Remember()}
	e := snapshot.New[rrset.Key, struct{}](hashByName).Edit()
	for want := range d.desired.All() {
		if c.isApex(want.Key) {
			c.apex++
		}
		if c.isOutOfSync(want.Key) {
			e.Put(want.Key, struct{}{})
			c.countKey(want.Key)
		}
	}
	for have := range m.All() {
		switch {
		case c.isForeign(have.Key):
			c.foreign++
		case c.isOutOfSync(have.Key):
			if _, counted := e.Get(have.Key); !counted {
				e.Put(have.Key, struct{}{})
				c.countKey(have.Key)
			}
		}
	}
	c.off, c.view = e.Map(), viewOf(d.desired, m, owner)
	c.pickShown()
	return c
}

// updated makes the comparison of a newer declaration and newer content.
func (c *serverComparison) updated(d *DesiredState, m *observe.Mirror) *serverComparison {
	if !slices.Equal(c.desired.NameServers.Pending, d.desired.NameServers.Pending) {
		return compareFully(d, m, c.answers, c.shared, c.owner) // What servers keep as it is was compared otherwise.
	}
	n := &serverComparison{desired: d.desired, pending: d.pending, mirror: m, answers: c.answers, shared: c.shared, owner: c.owner, rrsetCounts: c.rrsetCounts, view: viewOf(d.desired, m, c.owner)}
	e := c.off.Edit()
	done := map[string]bool{}
	for name := range n.changedNames(c) {
		if done[name] {
			continue
		}
		done[name] = true
		if delegationChanged(name, c.desired, c.mirror, d.desired, m) {
			return compareFully(d, m, c.answers, c.shared, c.owner) // It matters to everything below.
		}
		was, _ := c.compareName(name)
		n.addSigned(was, -1)
		for k := range c.off.Near(rrset.Key{Name: name}) {
			if k.Name == name {
				e.Delete(k)
			}
		}
		is, off := n.compareName(name)
		n.addSigned(is, 1)
		for _, k := range off {
			e.Put(k, struct{}{})
		}
	}
	n.off = e.Map()
	n.pickShown()
	return n
}

// changedNames yields the owner names at which c may differ from an older comparison; some may be repeated.
func (c *serverComparison) changedNames(old *serverComparison) iter.Seq[string] {
	held := seq.FlatMap(c.mirror.ChangedNames(old.mirror), func(name string) iter.Seq[string] {
		names := []string{name}
		if of, ok := ledger.DataName(c.desired.Name, name); ok && c.owner != "" {
			names = append(names, of)
		}
		return slices.Values(names)
	})
	return seq.Concat(changedDeclarations(c.desired, old.desired, c.pending, old.pending), c.changedApex(old), held)
}

// compareName compares one owner name.
func (c *serverComparison) compareName(name string) (rrsetCounts, []rrset.Key) {
	here := serverComparison{desired: c.desired, pending: c.pending, mirror: c.mirror, answers: c.answers, shared: c.shared, owner: c.owner, view: c.view.Remember()}
	var off []rrset.Key
	add := func(k rrset.Key) {
		switch {
		case here.isForeign(k):
			here.foreign++
		case here.isOutOfSync(k) && !slices.Contains(off, k):
			off = append(off, k)
			here.countKey(k)
		}
	}
	for s := range c.desired.At(name) {
		if here.isApex(s.Key) {
			here.apex++
		}
		add(s.Key)
	}
	for s := range c.mirror.At(name) {
		add(s.Key)
	}
	return here.rrsetCounts, off
}

// isForeign reports whether an RRset on the server is neither declared, nor pending removal, nor a name server's that waits for its address.
func (c *serverComparison) isForeign(k rrset.Key) bool {
	_, wanted := c.desired.Get(k)
	_, waits := c.pending.Get(k)
	return !wanted && !waits && !rrset.IsServerMaintained(k.Type) && !c.isApex(k) && !c.desired.IsKept(k) && !c.isOthers(k)
}

// isOthers reports whether an RRset on a server with an owner is there for other owners.
func (c *serverComparison) isOthers(k rrset.Key) bool {
	return c.owner != "" && c.view.IsOthers(k)
}

// have is what the server has of an RRset: with an owner, what it declares itself if that is there beside values of others.
func (c *serverComparison) have(k rrset.Key, want rrset.RRset) rrset.RRset {
	have, _ := c.mirror.Get(k)
	if c.owner != "" {
		have, _ = c.view.Have(k, want)
	}
	return have
}

// viewOf is what an owner sees of a server's content.
func viewOf(desired *source.Zone, m *observe.Mirror, owner string) ledger.View {
	return ledger.View{Zone: desired.Name, Owner: owner, Declared: desired, Observed: m}
}

// isApex reports whether an RRset is not the zone object's on this server.
func (c *serverComparison) isApex(k rrset.Key) bool { return c.shared && c.desired.IsApexData(k) }

// changedApex yields the names at which objects declare what the zone object alone declared before, or the other way round, if that
// matters here: the data may be the same.
func (c *serverComparison) changedApex(old *serverComparison) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !c.shared || c.desired == old.desired {
			return
		}
		for object := range c.desired.ChangedObjects(old.desired) {
			for _, desired := range []*source.Zone{c.desired, old.desired} {
				for _, d := range desired.Of(object) {
					if !yield(d.Key.Name) {
						return
					}
				}
			}
		}
	}
}

// isOutOfSync reports whether the server's RRset differs from the declared one, or is not what the server answers.
func (c *serverComparison) isOutOfSync(k rrset.Key) bool {
	want, wanted := c.desired.Get(k)
	if !wanted && rrset.IsServerMaintained(k.Type) || c.isApex(k) {
		return false
	}
	if !sameData(want, c.have(k, want)) || c.desired.IsKept(k) {
		return true
	}
	return wanted && (c.isHidden(k) || c.isShadowed(k))
}

func (c *serverComparison) isHidden(k rrset.Key) bool {
	_, hidden := hidingDelegation(c.desired, c.mirror, k)
	return hidden
}

func (c *serverComparison) isShadowed(k rrset.Key) bool {
	_, shadowed := shadowing(c.desired, c.mirror, c.answers, k)
	return shadowed
}

// countKey adds an RRset in off to the counts.
func (c *serverComparison) countKey(k rrset.Key) {
	if _, wanted := c.desired.Get(k); wanted {
		c.declared++
	}
	if _, held := c.mirror.Get(k); !held {
		c.missing++
	}
	if _, waits := c.pending.Get(k); waits {
		c.waiting++
	}
	if want, wanted := c.desired.Get(k); wanted && sameData(want, c.have(k, want)) && !c.isHidden(k) {
		c.shadowed++
	}
}

// pickShown selects the RRsets that a row shows.
func (c *serverComparison) pickShown() {
	for k := range c.off.All() {
		c.shown = rrset.InsertFirst(c.shown, maxObserved, k)
	}
}

// comparisonCache caches the last comparison of each server of a zone, so that the next one costs as much as has changed.
// It is safe for concurrent use.
type comparisonCache struct {
	mu   sync.Mutex
	last map[serverID]*serverComparison
	// union is the number of RRsets that are out of sync in any of these.
	of    []*serverComparison
	union int
}

type serverID struct {
	pod  string
	peer observe.Peer
}

// compareServers compares each server; nil for one without a mirror.
func (c *comparisonCache) compareServers(d *DesiredState, servers []serverAnswer) []*serverComparison {
	all := make([]*serverComparison, len(servers))
	next := make(map[serverID]*serverComparison, len(servers))
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
		case s.mirror.IsPartial():
			all[i] = compareAnswers(d, &s)
		case was == nil || was.mirror.IsPartial() || was.shared != (s.shared != "") || was.owner != s.owner || !maps.EqualFunc(was.answers, s.answers, observe.Answer.Says):
			all[i] = compareFully(d, s.mirror, s.answers, s.shared != "", s.owner)
		case was.desired != d.desired || was.mirror != s.mirror || !samePending(was.pending, d.pending):
			all[i] = was.updated(d, s.mirror)
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
	for range snapshot.Diff(a, b, slices.Equal) {
		return false
	}
	return true
}

// countOutOfSync counts the RRsets that are out of sync on any of the servers.
func (c *comparisonCache) countOutOfSync(all []*serverComparison) int {
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
			if !slices.ContainsFunc(all[:i], func(o *serverComparison) bool { return o.hasOff(k) }) {
				c.union++
			}
		}
	}
	return c.union
}

// hasOff reports whether an RRset is out of sync on the server; false if there is no comparison.
func (c *serverComparison) hasOff(k rrset.Key) bool {
	if c == nil {
		return false
	}
	_, off := c.off.Get(k)
	return off
}
