package source

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// revision is the next version of a zone in the making: first the index is brought up to date, which tells what names are
// touched; then those are decided, with all names that are related; then those whose notes depend on what has changed.
type revision struct {
	*Builder
	from *Zone
	// fresh collects everything when there is nothing in from; else it is nil.
	fresh        *bulk
	sets         *snapshot.Edit[rrset.Key, RRset]
	declarations *snapshot.Edit[ID, Declaration]
	refused      int
	changed      bool

	// touched are the names to decide, loose those that may have become useless.
	touched, loose []*node
	// naming are decided declarations that name hosts: their notes come last.
	naming []verdict
}

// bulk is what a zone that is made afresh is collected in: many small things that are cut from a few long slices.
type bulk struct {
	sets         []snapshot.Entry[rrset.Key, RRset]
	declarations []snapshot.Entry[ID, Declaration]
	refs         []Ref
	owners       [][]Ref
}

// newBulk makes room for at most so many declarations.
func newBulk(size int) *bulk {
	return &bulk{
		sets: make([]snapshot.Entry[rrset.Key, RRset], 0, size), declarations: make([]snapshot.Entry[ID, Declaration], 0, size),
		refs: make([]Ref, 0, size), owners: make([][]Ref, 0, size),
	}
}

// keep gives a declaration the place that it has until, and when afresh also after, it is decided.
func (r *revision) keep(id ID, d Declaration) *Declaration {
	if r.fresh == nil {
		return &d
	}
	all := append(r.fresh.declarations, snapshot.Entry[ID, Declaration]{Key: id, Value: d})
	r.fresh.declarations = all
	return &all[len(all)-1].Value
}

// verdict is a declaration with what was decided on it.
type verdict struct {
	id ID
	by Object
	*Declaration
}

func (b *Builder) revise(z *Zone) *revision {
	b.revisions++
	return &revision{Builder: b, from: z, sets: z.RRsets.Edit(), declarations: z.Declarations.Edit(), refused: z.Refused}
}

func (r *revision) touch(n *node) { r.touched = append(r.touched, n) }

// replace brings the index from the present form of an object to its next; nil when it declares nothing any more.
func (r *revision) replace(key ObjectKey, next Object) {
	present := r.objects[key]
	ids := idsOf(r.declarations.Near(ID{ObjectKey: key}), key)
	for _, id := range ids {
		if d, _ := r.declarations.Get(id); d.Reason != status.Invalid {
			n := r.names.remove(present, id.Index, &d)
			r.disturb(n, &d, n.cuts == 0)
		}
	}
	var declared []int
	if next != nil {
		for index := range r.declared(next) {
			declared = append(declared, index)
			r.declare(key, next, index)
		}
	}
	for _, id := range ids {
		if _, again := slices.BinarySearch(declared, id.Index); !again {
			r.drop(id)
		}
	}
}

// declare enters one declaration of an object. What is wrong by itself needs no decision.
func (r *revision) declare(key ObjectKey, o Object, index int) {
	id := ID{key, index}
	d := r.keep(id, r.Builder.declare(o, index))
	if !d.Accepted {
		r.tell(verdict{id, o, d})
		return
	}
	n := r.names.add(item{object: o, created: created(o), index: index, raw: d}, d)
	if r.fresh == nil {
		r.disturb(n, d, n.cuts == 1)
	} else if len(n.items) == 1 {
		r.touch(n)
	}
}

// disturb touches the names that a declaration which comes or goes may matter to. turning is true when its name begins or
// ceases to be one where a delegation may be.
func (r *revision) disturb(n *node, d *Declaration, turning bool) {
	r.touch(n)
	for host := range r.names.hostsOf(d) {
		if r.loose = append(r.loose, host); d.Key.Type == dns.TypeNS {
			r.touch(host)
		}
	}
	if d.Key.Type == dns.TypeNS && n != r.names.apex && turning {
		r.touched = slices.AppendSeq(r.touched, n.below())
	}
}

// finish decides and gives the zone.
func (r *revision) finish() *Zone {
	r.decide()
	if r.fresh != nil {
		r.sets = snapshot.Collect(hashKey, r.fresh.sets).Edit()
	}
	r.decide() // Names whose notes the first round has touched.
	r.noteHosts()
	switch {
	case r.fresh != nil:
		r.declarations = snapshot.Collect(hashID, r.fresh.declarations).Edit()
	case !r.changed:
		r.prune()
		return r.from
	default:
		r.prune()
	}
	return &Zone{
		Name: r.from.Name, Ref: r.from.Ref, SOA: r.from.SOA,
		RRsets: r.sets.Map(), Declarations: r.declarations.Map(), Refused: r.refused,
	}
}

func (r *revision) prune() {
	for _, n := range slices.Concat(r.touched, r.loose) {
		r.names.prune(n)
	}
}

// tell makes a verdict part of the zone.
func (r *revision) tell(v verdict) {
	if v.Note != "" {
		v.Note = label(v.by, v.id.Index) + v.Note
	}
	if !v.Accepted {
		r.refused++
	}
	if r.fresh != nil {
		return // It is in its place.
	}
	last, known := r.declarations.Get(v.id)
	if known && !last.Accepted {
		r.refused--
	}
	if !known || !last.Equal(*v.Declaration) {
		r.changed = true
		r.declarations.Put(v.id, *v.Declaration)
	}
}

func (r *revision) drop(id ID) {
	if last, known := r.declarations.Get(id); known && !last.Accepted {
		r.refused--
	}
	r.changed = true
	r.declarations.Delete(id)
}

// store makes the RRsets of a name, those given and no others, part of the zone.
func (r *revision) store(n *node, sets []RRset) {
	if r.fresh != nil {
		for i := range sets {
			r.fresh.sets = append(r.fresh.sets, snapshot.Entry[rrset.Key, RRset]{Key: sets[i].Key, Value: sets[i]})
		}
		return
	}
	var gone []rrset.Key
	for key := range r.sets.Near(rrset.Key{Name: n.name}) {
		if key.Name == n.name && findSet(sets, key.Type) == nil {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		r.sets.Delete(key)
		r.appeared(n, key.Type)
	}
	for i := range sets {
		last, known := r.sets.Get(sets[i].Key)
		if known && last.Equal(sets[i]) {
			continue
		}
		r.changed = true
		r.sets.Put(sets[i].Key, sets[i])
		if !known {
			r.appeared(n, sets[i].Key.Type)
		}
	}
}

// appeared touches all that has a note which depends on there being an RRset, which has come or gone.
func (r *revision) appeared(n *node, rrtype uint16) {
	r.changed = true
	switch {
	case rrtype == dns.TypeNS && n != r.names.apex:
		for host := range n.below() {
			r.touchUsers(host)
		}
	case rrtype != dns.TypeA && rrtype != dns.TypeAAAA && rrtype != dns.TypeCNAME:
	case n.name[0] == '*' && n != r.names.apex:
		for host := range n.parent.below() {
			r.touchUsers(host)
		}
	default:
		r.touchUsers(n)
	}
}

func (r *revision) touchUsers(host *node) {
	for user := range host.users {
		r.touch(user)
	}
}

func findSet(sets []RRset, rrtype uint16) *RRset {
	for i := range sets {
		if sets[i].Type == rrtype {
			return &sets[i]
		}
	}
	return nil
}
