package source

import (
	"cmp"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// decideTouched decides the touched names that are not decided yet.
func (r *zoneRevision) decideTouched() {
	for _, n := range r.touched {
		r.decideName(n)
	}
}

// decideName decides a name with all that are related, unless it is decided already.
func (r *zoneRevision) decideName(n *nameNode) {
	switch {
	case n.decided == r.revisions:
	case r.tree.isRelated(n):
		r.decideGroup(r.tree.relatedNodes(n)...)
	case len(n.items) == 1:
		r.decideAlone(n)
	default:
		r.decideGroup(n)
	}
}

// readItem yields what an item declares, to be decided on.
func (r *zoneRevision) readItem(it *nodeItem) *Declaration {
	d := it.raw
	if it.raw = nil; d == nil {
		ref := refOf(it.object)
		again := r.Builder.readDeclaration(declaredIndex{it.object, &ref, it.index})
		d = &again
	}
	return d
}

// decideAlone accepts the only declaration of a name that no other one can exclude.
func (r *zoneRevision) decideAlone(n *nameNode) {
	n.decided = r.revisions
	it := &n.items[0]
	d := r.readItem(it)
	var sets []RRset
	label := declaration.Label(it.object, it.index)
	if why := orphanConflict(d.Key, nil); why != "" {
		d.markWaiting(status.Conflict, label+why)
	} else if why := r.opts.MaxRecords.Excess(d.Key, len(d.Rdata), 0, d.Ref.Namespace); why != "" {
		d.markWaiting(status.Unsupported, label+why)
	} else {
		sets = []RRset{r.newRRset(d.rrset(), d.Ref)}
	}
	r.storeRRsets(n, sets)
	r.settleItem(it, d)
}

// settleItem stores what was decided on an item, or keeps it until all hosts are known.
func (r *zoneRevision) settleItem(it *nodeItem, d *Declaration) {
	v := decidedDeclaration{ID{d.Ref.Key(), it.index}, it.object, d}
	if v.Accepted && namesHosts(v.Key.Type) {
		r.naming = append(r.naming, v)
		return
	}
	r.storeDeclaration(v)
}

// groupDecision decides between declarations of names that are related to each other.
type groupDecision struct {
	*zoneRevision
	sets map[*nameNode][]RRset
	conflictState
	// lowest is, for RRsets that are declared with different TTLs, the object with the lowest.
	lowest map[rrset.Key]*Ref
}

// declarationCandidate is a declaration on which there is to decide.
type declarationCandidate struct {
	*nodeItem
	at *nameNode
	*Declaration
}

// decideGroup decides names that are related, all of them.
func (r *zoneRevision) decideGroup(group ...*nameNode) {
	d := &groupDecision{zoneRevision: r, sets: make(map[*nameNode][]RRset, len(group)), conflictState: newConflictState(), lowest: map[rrset.Key]*Ref{}}
	var all []declarationCandidate
	for _, n := range group {
		n.decided = r.revisions
		for i := range n.items {
			all = append(all, declarationCandidate{nodeItem: &n.items[i], at: n})
		}
	}
	slices.SortFunc(all, func(a, b declarationCandidate) int { return d.compareItems(a.nodeItem, b.nodeItem) })
	whole := slices.Contains(group, r.tree.apex)
	if whole {
		d.declareApex()
	}
	for i := range all {
		all[i].Declaration = r.readItem(all[i].nodeItem)
		if all[i].Key.Type != dns.TypeDS {
			d.admitCandidate(&all[i])
		}
	}
	for i := range all { // A DS depends on the delegation, however old either is.
		if all[i].Key.Type == dns.TypeDS {
			d.admitCandidate(&all[i])
		}
	}
	if whole {
		d.addServerAddresses()
	}
	for _, n := range group {
		r.storeRRsets(n, d.sets[n])
	}
	for i := range all {
		c := &all[i]
		if c.Accepted {
			c.addNote(d.ttlWarning(c))
		}
		r.settleItem(c.nodeItem, c.Declaration)
	}
}

// isOwn reports whether an object is of the zone's own namespace.
func (d *groupDecision) isOwn(o Object) bool { return o.GetNamespace() == d.ref.Namespace }

// admitCandidate makes a declaration part of the zone, unless one that comes first excludes it.
func (d *groupDecision) admitCandidate(c *declarationCandidate) {
	beside := cmp.Or(d.aliasConflict(c), d.singleConflict(c))
	around := cmp.Or(d.hostConflict(c), d.cutConflict(c), d.sizeConflict(c))
	label := declaration.Label(c.object, c.index)
	if around != "" {
		c.markRefused(status.Conflict, label+cmp.Or(beside, around))
		return
	} else if why := cmp.Or(beside, orphanConflict(c.Key, d.sets[c.at])); why != "" {
		c.markWaiting(status.Conflict, label+why)
		return
	} else if why := d.limitConflict(c); why != "" {
		c.markWaiting(status.Unsupported, label+why)
		return
	}
	d.noteAccepted(c)
	d.uniteRRset(c.at, c.rrset(), c.Ref)
}

// declareApex adds what the zone object itself declares: its NS RRset, and addresses of the name servers inside it.
