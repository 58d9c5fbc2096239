package source

import (
	"cmp"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// decide decides the touched names that are not decided yet.
func (r *revision) decide() {
	for _, n := range r.touched {
		r.decideName(n)
	}
}

// decideName decides a name with all that are related, unless it is decided already.
func (r *revision) decideName(n *node) {
	switch {
	case n.decided == r.revisions:
	case r.names.isRelated(n):
		r.decideGroup(r.names.related(n)...)
	case len(n.items) == 1:
		r.decideAlone(n)
	default:
		r.decideGroup(n)
	}
}

// read gives what an item declares, to be decided on.
func (r *revision) read(it *item) *Declaration {
	d := it.raw
	if it.raw = nil; d == nil {
		again := r.Builder.declare(it.object, it.index)
		d = &again
	}
	return d
}

// decideAlone accepts the only declaration of a name that no other one can exclude.
func (r *revision) decideAlone(n *node) {
	n.decided = r.revisions
	it := &n.items[0]
	d := r.read(it)
	r.store(n, []RRset{r.newSet(d.Key, d.TTL, d.Rdata, d.Ref)})
	r.settle(it, d)
}

// settle tells what was decided on an item, or keeps it until all hosts are known.
func (r *revision) settle(it *item, d *Declaration) {
	v := verdict{ID{ObjectKey{d.Ref.Kind, d.Ref.Namespace, d.Ref.Name}, it.index}, it.object, d}
	if v.Accepted && namesHosts(v.Key.Type) {
		r.naming = append(r.naming, v)
		return
	}
	r.tell(v)
}

// decision decides between declarations of names that are related to each other.
type decision struct {
	*revision
	sets map[*node][]RRset
	conflicts
	// lowest is, for RRsets that are declared with different TTLs, the object with the lowest.
	lowest map[rrset.Key]Ref
}

// candidate is a declaration on which there is to decide.
type candidate struct {
	*item
	at *node
	*Declaration
}

// decideGroup decides names that are related, all of them.
func (r *revision) decideGroup(group ...*node) {
	d := &decision{revision: r, sets: make(map[*node][]RRset, len(group)), conflicts: newConflicts(), lowest: map[rrset.Key]Ref{}}
	var all []candidate
	for _, n := range group {
		n.decided = r.revisions
		for i := range n.items {
			all = append(all, candidate{item: &n.items[i], at: n})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return compareItems(a.item, b.item) })
	whole := slices.Contains(group, r.names.apex)
	if whole {
		d.declareApex()
	}
	for i := range all {
		all[i].Declaration = r.read(all[i].item)
		d.admit(&all[i])
	}
	if whole {
		d.addServerAddresses()
	}
	for _, n := range group {
		r.store(n, d.sets[n])
	}
	for i := range all {
		c := &all[i]
		if c.Accepted {
			c.remark(d.ttlNote(c))
		}
		r.settle(c.item, c.Declaration)
	}
}

// admit makes a declaration part of the zone, unless an older one excludes it.
func (d *decision) admit(c *candidate) {
	if why := cmp.Or(d.aliasConflict(c), d.hostConflict(c), d.cutConflict(c), d.limit(c)); why != "" {
		c.refuse(status.Conflict, label(c.object, c.index)+why)
		return
	}
	d.claim(c)
	d.add(c.at, c.Key, c.TTL, c.Rdata, c.Ref)
}

// declareApex adds what the zone object itself declares: its NS RRset, and addresses of the name servers inside it.
