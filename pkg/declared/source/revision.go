package source

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// zoneRevision is the next version of a zone in the making: first the tree of names is brought up to date, which shows what names are
// touched; then those are decided, with all names that are related; then those whose notes depend on what has changed.
type zoneRevision struct {
	*Builder
	from *Zone
	// fresh collects everything when there is nothing in from; else it is nil.
	fresh        *freshContent
	sets         *snapshot.Edit[rrset.Key, RRset]
	declarations *snapshot.Edit[ID, Declaration]
	refused      int
	elsewhere    int
	changed      bool

	// touched are the names to decide, loose those that may have become useless.
	touched, loose []*nameNode
	// naming are decided declarations that name hosts: their notes come last.
	naming []decidedDeclaration
}

// freshContent is what a zone that is made afresh is collected in: many small things that are cut from a few long slices.
type freshContent struct {
	sets         []snapshot.Entry[rrset.Key, RRset]
	declarations []snapshot.Entry[ID, Declaration]
	refs         []*Ref
	owners       [][]*Ref
}

// declaredIndex is one declaration of an object, to be read.
type declaredIndex struct {
	by Object
	// ref names the object, for all that it declares.
	ref   *Ref
	index int
}

// readFresh reads declarations, each of which has its place until, and also after, it is decided.
func (b *Builder) readFresh(all []declaredIndex) *freshContent {
	read := make([]snapshot.Entry[ID, Declaration], len(all))
	parallel.ForRange(len(all), func(i int) {
		read[i].Key, read[i].Value = ID{all[i].ref.Key(), all[i].index}, b.readDeclaration(all[i])
	})
	size := len(all)
	return &freshContent{
		declarations: read, sets: make([]snapshot.Entry[rrset.Key, RRset], 0, size), refs: make([]*Ref, 0, size), owners: make([][]*Ref, 0, size),
	}
}

// decidedDeclaration is a declaration with what was decided on it.
type decidedDeclaration struct {
	id ID
	by Object
	*Declaration
}

func (b *Builder) newRevision(z *Zone) *zoneRevision {
	b.revisions++
	return &zoneRevision{Builder: b, from: z, sets: z.RRsets.Edit(), declarations: z.Declarations.Edit(), refused: z.Refused, elsewhere: z.Elsewhere}
}

func (r *zoneRevision) touchNode(n *nameNode) { r.touched = append(r.touched, n) }

// replaceObject brings the index from the present form of an object to its next; nil when it declares nothing any more.
func (r *zoneRevision) replaceObject(key ObjectKey, next Object) {
	present := r.objects[key]
	indexes := indexesOf(r.declarations.Near(ID{ObjectKey: key}), key)
	for _, index := range indexes {
		if d, _ := r.declarations.Get(ID{key, index}); d.Reason != status.Invalid {
			n := r.tree.removeItem(present, index, &d)
			r.touchRelated(n, &d, n.cuts == 0)
		}
	}
	var declared []int
	if next != nil {
		ref := refOf(next)
		for index := range r.declaredIndexes(next) {
			declared = append(declared, index)
			d := r.Builder.readDeclaration(declaredIndex{next, &ref, index})
			r.enterDeclaration(ID{key, index}, next, &d)
		}
	}
	for _, index := range indexes {
		if _, again := slices.BinarySearch(declared, index); !again {
			r.dropDeclaration(ID{key, index})
		}
	}
}

// enterDeclaration enters a declaration. What is wrong by itself needs no decision.
func (r *zoneRevision) enterDeclaration(id ID, o Object, d *Declaration) {
	if !d.Accepted {
		r.storeDeclaration(decidedDeclaration{id, o, d})
		return
	}
	n := r.tree.addItem(nodeItem{object: o, index: id.Index, raw: d}, d)
	if r.fresh == nil {
		r.touchRelated(n, d, n.cuts == 1)
	} else if len(n.items) == 1 {
		r.touchNode(n)
	}
}

// touchRelated touches the names that a declaration which comes or goes may matter to. turning is true when its name begins or
// ceases to be one where a delegation may be.
func (r *zoneRevision) touchRelated(n *nameNode, d *Declaration, turning bool) {
	r.touchNode(n)
	for host := range r.tree.hostsOf(d) {
		if r.loose = append(r.loose, host); d.Key.Type == dns.TypeNS {
			r.touchNode(host)
		}
	}
	if r.tree.mayCut(n, d.Key.Type) && turning {
		r.touched = slices.AppendSeq(r.touched, n.subtree())
	}
}

// finishZone decides and gives the zone.
func (r *zoneRevision) finishZone() *Zone {
	r.decideTouched()
	if r.fresh != nil {
		r.sets = snapshot.Collect(hashKey, r.fresh.sets).Edit()
	}
	r.decideTouched() // Names whose notes the first round has touched.
	r.warnOfHosts()
	switch {
	case r.fresh != nil:
		r.declarations = snapshot.Collect(hashID, r.fresh.declarations).Edit()
	case !r.changed:
		r.pruneNodes()
		return r.from
	default:
		r.pruneNodes()
	}
	return &Zone{
		Name: r.from.Name, Ref: r.from.Ref, SOA: r.from.SOA,
		RRsets: r.sets.Map(), Declarations: r.declarations.Map(), Refused: r.refused, Elsewhere: r.elsewhere, NameServers: r.nameServers,
	}
}

func (r *zoneRevision) pruneNodes() {
	for _, n := range slices.Concat(r.touched, r.loose) {
		r.tree.pruneNode(n)
	}
}

// storeDeclaration makes a verdict part of the zone.
func (r *zoneRevision) storeDeclaration(v decidedDeclaration) {
	if v.Note != "" {
		v.Note = declaration.Label(v.by, v.id.Index) + v.Note
	}
	r.count(*v.Declaration, 1)
	if r.fresh != nil {
		return // It is in its place.
	}
	last, known := r.declarations.Get(v.id)
	if known {
		r.count(last, -1)
	}
	if !known || !last.Equal(*v.Declaration) {
		r.changed = true
		r.declarations.Put(v.id, *v.Declaration)
	}
}

// count adds a declaration that comes, or goes (-1), to those that are not accepted.
func (r *zoneRevision) count(d Declaration, n int) {
	if !d.Accepted {
		r.refused += n
	}
	if d.IsElsewhere() {
		r.elsewhere += n
	}
}

func (r *zoneRevision) dropDeclaration(id ID) {
	if last, known := r.declarations.Get(id); known {
		r.count(last, -1)
	}
	r.changed = true
	r.declarations.Delete(id)
}

// storeRRsets makes the RRsets of a name, those given and no others, part of the zone.
func (r *zoneRevision) storeRRsets(n *nameNode, sets []RRset) {
	sets = r.withSigner(n, sets)
	if r.fresh != nil {
		for i := range sets {
			r.fresh.sets = append(r.fresh.sets, snapshot.Entry[rrset.Key, RRset]{Key: sets[i].Key, Value: sets[i]})
		}
		return
	}
	var gone []rrset.Key
	for key := range r.sets.Near(rrset.Key{Name: n.name}) {
		if key.Name == n.name && findRRset(sets, key.Type) == nil {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		r.sets.Delete(key)
		r.touchDependents(n, key.Type)
	}
	for i := range sets {
		last, known := r.sets.Get(sets[i].Key)
		if known && last.Equal(sets[i]) {
			continue
		}
		r.changed = true
		r.sets.Put(sets[i].Key, sets[i])
		if !known {
			r.touchDependents(n, sets[i].Key.Type)
		}
	}
}

// touchDependents touches all that has a note which depends on there being an RRset, which has come or gone.
func (r *zoneRevision) touchDependents(n *nameNode, rrtype uint16) {
	r.changed = true
	switch {
	case rrtype == dns.TypeNS && n != r.tree.apex:
		for host := range n.subtree() {
			r.touchUsers(host)
		}
	case rrtype != dns.TypeA && rrtype != dns.TypeAAAA && rrtype != dns.TypeCNAME:
	case n.name[0] == '*' && n != r.tree.apex:
		for host := range n.parent.subtree() {
			r.touchUsers(host)
		}
	default:
		r.touchUsers(n)
	}
}

func (r *zoneRevision) touchUsers(host *nameNode) {
	for user := range host.users {
		r.touchNode(user)
	}
}

func findRRset(sets []RRset, rrtype uint16) *RRset {
	for i := range sets {
		if sets[i].Type == rrtype {
			return &sets[i]
		}
	}
	return nil
}
