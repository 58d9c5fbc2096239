package ledger

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// Group returns the owner name whose values and ledger an RRset is among: they change in one message.
func Group(zone string, key rrset.Key) string {
	if of, ok := DataName(zone, key.Name); ok {
		return of
	}
	return key.Name
}

// View is what a server that others write to as well is to hold, as one owner sees it: what the owner declares beside what others have there,
// and its claims. It has what is the owner's or that of other owners; what nobody claims is only there in RRsets with values of the owner. It
// is a plan.Blocking.
type View struct {
	// Zone and Owner are the zone's canonical name, and the name of the owner.
	Zone, Owner string
	// Declared is what the owner declares, Observed all that the server holds.
	Declared, Observed plan.Content
	// IsKept reports of an owner name whether nothing is to change there; nil if it may everywhere.
	IsKept func(name string) bool

	memory *memory
}

// Remember returns a View that reads a name and its ledger once for all that is asked about them. What it views must not change from then on. It
// is safe for concurrent use.
func (v View) Remember() View {
	v.memory = &memory{}
	return v
}

// nameView is a View of one owner name.
type nameView struct {
	// sets are the RRsets at the name, and record the ledger; it has no values if there is none.
	sets   []rrset.RRset
	record rrset.RRset
	// blocked are the declared RRsets that cannot be there.
	blocked []plan.Conflict
	// ours has the types that the owner has claimed so far.
	ours map[uint16]Claim
}

// Get implements plan.Content.
func (v View) Get(key rrset.Key) (rrset.RRset, bool) {
	for set := range v.At(key.Name) {
		if set.Key == key {
			return set, true
		}
	}
	return rrset.RRset{}, false
}

// At implements plan.Content.
func (v View) At(name string) iter.Seq[rrset.RRset] {
	if !IsBelow(v.Zone, name) {
		return slices.Values(v.look(name).sets)
	}
	return func(yield func(rrset.RRset) bool) {
		of, ok := DataName(v.Zone, name)
		if !ok {
			return
		}
		if record := v.look(of).record; len(record.Rdata) > 0 {
			yield(record)
		}
	}
}

// All implements plan.Content.
func (v View) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for name := range v.names() {
			at := v.look(name)
			for _, set := range slices.Concat(at.sets, []rrset.RRset{at.record}) {
				if len(set.Rdata) > 0 && !yield(set) {
					return
				}
			}
		}
	}
}

// Len implements plan.Content.
func (v View) Len() int { return seq.Count(v.All()) }

// Names returns all owner names that matter, with those of ledgers.
func (v View) Names() map[string]struct{} {
	all := v.names()
	for name := range maps.Clone(all) {
		if record, err := RecordName(v.Zone, name); err == nil {
			all[record] = struct{}{}
		}
	}
	return all
}

// names returns the owner names with something declared or claimed.
func (v View) names() map[string]struct{} {
	all := map[string]struct{}{}
	for set := range v.Declared.All() {
		all[set.Name] = struct{}{}
	}
	for set := range v.Observed.All() {
		if of, ok := DataName(v.Zone, set.Name); ok && set.Type == dns.TypeTXT {
			all[of] = struct{}{}
		}
	}
	return all
}

// Twin returns the name of the ledger of an owner name, or the owner name of a ledger; empty if there is none. What is to be at one of them
// depends on what is at the other.
func (v View) Twin(name string) string {
	if of, ok := DataName(v.Zone, name); ok {
		return of
	}
	record, _ := RecordName(v.Zone, name)
	return record
}

// Blocked implements plan.Blocking.
func (v View) Blocked(name string) []plan.Conflict { return v.look(name).blocked }

// IsDeletable reports whether an RRset that the View does not have is the owner's to delete.
func (v View) IsDeletable(key rrset.Key) bool {
	if of, ok := DataName(v.Zone, key.Name); ok {
		return key.Type == dns.TypeTXT && len(v.look(of).ours) > 0
	}
	_, ours := v.look(key.Name).ours[key.Type]
	return ours
}

// Own is what the owner has claimed, as observed: RRsets with its own values alone.
func (v View) Own() plan.Content { return ownContent{v} }

// ownContent implements plan.Content.
type ownContent struct{ View }

// Get implements plan.Content.
func (o ownContent) Get(key rrset.Key) (rrset.RRset, bool) {
	set, there := o.Observed.Get(key)
	if !there {
		return rrset.RRset{}, false
	}
	set = o.ownValues(o.ledgerOf(key.Name), set)
	return set, len(set.Rdata) > 0
}

// At implements plan.Content.
func (o ownContent) At(name string) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		ledger := o.ledgerOf(name)
		if len(ledger.entries[o.Owner].Claims) == 0 {
			return
		}
		for set := range o.Observed.At(name) {
			if own := o.ownValues(ledger, set); len(own.Rdata) > 0 && !yield(own) {
				return
			}
		}
	}
}

// All implements plan.Content.
func (o ownContent) All() iter.Seq[rrset.RRset] {
	return seq.FlatMap(maps.Keys(o.names()), o.At)
}

// Len implements plan.Content.
func (o ownContent) Len() int { return seq.Count(o.All()) }

// Have is what the server has of an RRset as far as it concerns the owner, who wants the RRset want; that has no values if the owner wants none. It
// equals want if all of its values are there, with the lowest TTL of all owners, and no other value that the owner has claimed. Others are the
// values beside these, each with the owners who have claimed it.
func (v View) Have(key rrset.Key, want rrset.RRset) (have rrset.RRset, others []string) {
	have, _ = v.Observed.Get(key)
	l := v.ledgerOf(key.Name)
	own := v.ownValues(l, have)
	for _, rdata := range have.Rdata {
		if owners := l.OwnersOf(key.Type, rdata, v.Owner); len(owners) > 0 {
			others = append(others, fmt.Sprintf("%s (%s)", rdata, joinOwners(owners)))
		} else if !slices.Contains(own.Rdata, rdata) && !slices.Contains(want.Rdata, rdata) {
			others = append(others, fmt.Sprintf("%s (nobody's)", rdata))
		}
	}
	isMissing := func(rdata string) bool { return !slices.Contains(have.Rdata, rdata) }
	isLeft := func(rdata string) bool {
		return !slices.Contains(want.Rdata, rdata) && len(l.OwnersOf(key.Type, rdata, v.Owner)) == 0
	}
	switch {
	case len(want.Rdata) == 0:
		own.Rdata = slices.DeleteFunc(own.Rdata, func(rdata string) bool { return !isLeft(rdata) })
		return own, others
	case slices.ContainsFunc(want.Rdata, isMissing), slices.ContainsFunc(own.Rdata, isLeft):
		return have, others
	}
	ttl := want.TTL
	for _, c := range l.others(v.Owner, key.Type) {
		ttl = min(ttl, c.TTL)
	}
	if have.TTL != ttl {
		return have, others
	}
	return want, others
}

// IsOthers reports whether an RRset that the owner does not declare is a ledger, or has values of other owners alone.
func (v View) IsOthers(key rrset.Key) bool {
	if _, ok := DataName(v.Zone, key.Name); ok && key.Type == dns.TypeTXT {
		return true
	}
	set, there := v.Observed.Get(key)
	if !there {
		return false
	}
	n := naming{owner: v.Owner, ledger: v.ledgerOf(key.Name)}
	return len(n.ledger.entries) > 0 && n.isClaimed(set)
}

func (v View) ownValues(l Ledger, set rrset.RRset) rrset.RRset {
	own := rrset.RRset{Key: set.Key, TTL: set.TTL}
	claim, some := l.Of(v.Owner, set.Type)
	if !some {
		return own
	}
	for _, rdata := range set.Rdata {
		if _, claimed := claim.Values[HashOf(set.Type, rdata)]; claimed {
			own.Rdata = append(own.Rdata, rdata)
		}
	}
	return own
}

// Claims reports whether the owner has claims on an RRset, as observed.
func (v View) Claims(key rrset.Key) bool {
	_, claimed := v.ledgerOf(key.Name).Of(v.Owner, key.Type)
	return claimed
}

func (v View) ledgerOf(name string) Ledger {
	return v.memory.ledgerOf(name, v.readLedger)
}

func (v View) readLedger(name string) Ledger {
	record, err := RecordName(v.Zone, name)
	if err != nil {
		return Ledger{}
	}
	set, _ := v.Observed.Get(rrset.Key{Name: record, Type: dns.TypeTXT})
	return Read(set)
}

// look finds what is to be at an owner name. The result must not be changed.
func (v View) look(name string) nameView { return v.memory.look(name, v.lookAnew) }

func (v View) lookAnew(name string) (at nameView) {
	declared := slices.Collect(v.Declared.At(name))
	record, err := RecordName(v.Zone, name)
	if err != nil {
		for _, want := range declared {
			at.blocked = append(at.blocked, plan.Conflict{Want: want, Why: err.Error()})
		}
		return at
	}
	was, there := v.Observed.Get(rrset.Key{Name: record, Type: dns.TypeTXT})
	if len(declared) == 0 && !there {
		return at
	}
	n := newNaming(v, name, Read(was))
	at.ours = n.ledger.entries[v.Owner].Claims
	if v.IsKept != nil && v.IsKept(name) {
		at.sets, at.record = slices.Collect(v.Observed.At(name)), was
		return at
	}
	next := Entry{Owner: v.Owner}
	for _, want := range declared {
		if conflict, blocked := n.blocks(want); blocked {
			at.blocked = append(at.blocked, conflict)
			continue
		}
		var values []Hash
		for _, rdata := range want.Rdata {
			values = append(values, HashOf(want.Type, rdata))
		}
		next.claim(want.Type, want.TTL, values...)
		at.sets = append(at.sets, n.unite(want))
	}
	for rrtype, have := range n.have {
		if _, done := next.Claims[rrtype]; done {
			continue
		}
		_, ours := at.ours[rrtype]
		if rest := n.unite(rrset.RRset{Key: have.Key}); ours && len(rest.Rdata) > 0 {
			at.sets = append(at.sets, rest)
		} else if !ours && n.isClaimed(have) {
			at.sets = append(at.sets, have)
		}
	}
	if at.record = was; len(next.Claims)+len(at.ours) > 0 {
		at.record = rrset.New(rrset.Key{Name: record, Type: dns.TypeTXT}, TTL, n.ledger.with(next)...)
	}
	return at
}

// naming is what others have at an owner name.
type naming struct {
	owner  string
	ledger Ledger
	// have is what is there, and rest that without the values that are the owner's alone.
	have map[uint16]rrset.RRset
	rest map[uint16][]string
}

func newNaming(v View, name string, ledger Ledger) naming {
	n := naming{v.Owner, ledger, map[uint16]rrset.RRset{}, map[uint16][]string{}}
	for set := range v.Observed.At(name) {
		if rrset.IsServerMaintained(set.Type) {
			continue
		}
		n.have[set.Type] = set
		ours, some := ledger.Of(v.Owner, set.Type)
		for _, rdata := range set.Rdata {
			own := false
			if some {
				_, own = ours.Values[HashOf(set.Type, rdata)]
			}
			if !own || len(ledger.OwnersOf(set.Type, rdata, v.Owner)) > 0 {
				n.rest[set.Type] = append(n.rest[set.Type], rdata)
			}
		}
	}
	return n
}

// unite returns an RRset with what the owner wants in it, and what others have there. Its TTL is the lowest that an owner has declared.
func (n naming) unite(want rrset.RRset) rrset.RRset {
	set := rrset.New(want.Key, want.TTL, slices.Concat(want.Rdata, n.rest[want.Type])...)
	set.Spelling = want.Spelling
	declared := len(want.Rdata) > 0
	for _, c := range n.ledger.others(n.owner, want.Type) {
		if !declared || c.TTL < set.TTL {
			set.TTL, declared = c.TTL, true
		}
	}
	if !declared {
		set.TTL = n.have[want.Type].TTL
	}
	return set
}

// isClaimed reports whether other owners have claimed all values of an RRset.
func (n naming) isClaimed(set rrset.RRset) bool {
	return !slices.ContainsFunc(set.Rdata, func(rdata string) bool { return len(n.ledger.OwnersOf(set.Type, rdata, n.owner)) == 0 })
}

// blocks reports whether what others have at the name excludes an RRset. Whoever was first stays.
func (n naming) blocks(want rrset.RRset) (c plan.Conflict, blocked bool) {
	c.Want = want
	var owners []string
	for owner, e := range n.ledger.entries {
		for rrtype, claim := range e.Claims {
			if owner != n.owner && n.excludes(want, rrtype, claim) {
				owners = append(owners, fmt.Sprintf("%s (%s)", owner, rrset.TypeName(rrtype)))
			}
		}
	}
	for rrtype, rest := range n.rest {
		isOther := rrtype != want.Type || hasOne(rrtype) && !slices.Equal(rest, want.Rdata)
		if isOther && (rrtype == want.Type || plan.Excludes(rrtype, want.Type)) {
			c.Foreign = append(c.Foreign, rrset.Key{Name: want.Name, Type: rrtype})
		}
	}
	slices.SortFunc(c.Foreign, rrset.Key.Compare)
	if slices.Sort(owners); len(owners) > 0 {
		c.Why = fmt.Sprintf("%s published there first what cannot stand beside it", joinOwners(owners))
	}
	return c, len(owners)+len(c.Foreign) > 0
}

// excludes reports whether the claim of another owner on a type excludes an RRset.
func (n naming) excludes(want rrset.RRset, rrtype uint16, claim Claim) bool {
	if rrtype != want.Type {
		return plan.Excludes(rrtype, want.Type)
	}
	if !hasOne(rrtype) {
		return false
	}
	return !slices.ContainsFunc(want.Rdata, func(rdata string) bool { _, same := claim.Values[HashOf(rrtype, rdata)]; return same })
}

// hasOne reports whether an RRset of a type has one value only (RFC 1034 section 3.6.2, RFC 6672 section 2.4).
func hasOne(rrtype uint16) bool { return rrtype == dns.TypeCNAME || rrtype == dns.TypeDNAME }
