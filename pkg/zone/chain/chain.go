// Package chain decides which DS records the zones above a signed zone are to have, what the server that signs is told of that, and when
// the zone may stop signing (RFC 4035 section 5.2, RFC 6781 section 4.1.2, RFC 7344).
//
// A zone above that is not declared here takes its DS records from the CDS records of the zone, in its own time (RFC 7344, RFC 8078).
//
// It does no I/O: Decide takes what was decided before and what servers show now. What it decides is kept in the status of the signed zone,
// from where the zones above take the DS records.
package chain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
)

const (
	// maxTTL is how long resolvers keep an answer at most (RFC 8767 section 4, RFC 2181 section 8).
	maxTTL = 7 * 24 * time.Hour
	// lookInterval is how long to wait for others before the next look, waitInterval while no resolver may rely on a key yet, and
	// restInterval if nothing is to come: somebody may still declare DS records.
	lookInterval = 5 * time.Second
	waitInterval = 15 * time.Second
	restInterval = 5 * time.Minute
	// maxKeys is how many keys are kept in a status.
	maxKeys = 32
)

// Facts are what is known at one moment.
type Facts struct {
	Now  time.Time
	Zone Zone
	// Parents are the zones that delegate the zone, each once.
	Parents []Parent
	// Former are, if there are no Parents, zones that delegated the zone before and are still served: they may have DS records of it.
	Former []Parent
	// ParentTTL is the longest TTL that the parents give their DS records.
	ParentTTL time.Duration
}

// Zone is a signed zone on its own servers. Keys have the names that dnssec.EntryPoints gives them.
type Zone struct {
	// Keys are the key-signing keys that the server which signs has in the zone.
	Keys []string
	// Announced are those of them that its CDS records name (RFC 7344): the server that signs wants DS records of them. None if it does not say.
	Announced []string
	// Points are what DS records name the keys.
	Points dnssec.EntryPoints
	// IsWhole is true if the whole zone is signed with the keys, and all of its servers have it so.
	IsWhole bool
	// HasOthers is true if a server may answer with an earlier version of the zone, which may have other keys.
	HasOthers bool
	// TTL is the highest one in the zone. It counts if there are keys that are new.
	TTL time.Duration
	// Ends is true if the zone is to be signed no more.
	Ends bool
	// IsTheirs is true if others run the server that signs: DS records change only as the zone asks for by CDS records, and go if Ends. The
	// server looks for itself which there are. Objection is why what the zone asks for is not followed; empty if it is.
	IsTheirs  bool
	Objection string
}

// Parent is a zone that delegates the signed zone.
type Parent struct {
	UID types.UID
	// Name is the DNS name, as messages have it.
	Name string
	// IsElsewhere is true if nobody declares it here. Its DS records are its own: only those of keys of the zone are the zone's.
	IsElsewhere bool
	// Servers are what its servers answered.
	Servers []Answer
}

// Answer is a server's answer to the question for the DS records of the zone.
type Answer struct {
	// IsKnown is false if it did not answer with authority.
	IsKnown bool
	// DS are the data of the records, in canonical form.
	DS  []string
	TTL time.Duration
}

// Decision is what follows from Facts.
type Decision struct {
	// Delegation is what the zone's status is to have; nil if it is to have nothing.
	Delegation *v1beta1.SecureDelegation
	// Confirm are the keys of which the server that signs is to be told that all servers of the parents have the DS record, Withdraw those
	// of which none has it any more.
	Confirm, Withdraw []string
	// Delegated says how far it is; the zero value if there is no parent.
	Delegated status.Verdict
	// BehindSince is since when a server of the parents has answered with other DS records than those that the zone asks for; the zero value
	// if none does, or if the zone never asked for anything else.
	BehindSince time.Time
	// Next is when to look again.
	Next time.Duration
}

// IsNew reports whether there is a key that is not published yet: then Zone.TTL counts.
func IsNew(last *v1beta1.SecureDelegation, keys []string) bool {
	return slices.ContainsFunc(keys, func(ds string) bool {
		k := find(last, ds)
		return k == nil || !k.Published
	})
}

func find(d *v1beta1.SecureDelegation, ds string) *v1beta1.DelegatedKey {
	if d == nil {
		return nil
	}
	for i := range d.Keys {
		if d.Keys[i].DS == ds {
			return &d.Keys[i]
		}
	}
	return nil
}

// Decide decides what follows from facts after what was decided before, which is nil at first:
//
//   - A key gets a DS record once all servers of the zone have had it, and the whole zone signed with it, for the highest TTL of the
//     zone: no resolver has unsigned answers left then. If the server that signs announces keys, only those get one.
//   - A DS record goes if its key is announced no more and another one takes its place; if no server has the key any more, at once.
//   - All go if the zone is to be signed no more. Signing may end once no server of the parents has had a DS record, whoever declared it,
//     for as long as resolvers may keep one. Toward a zone elsewhere it is enough that the server that signs knows of the records: it asks
//     for their removal by CDS records, and signs until it is told that they are gone.
//   - If others run the server that signs, a key gets a DS record only if it is announced, and loses it only to one that is announced: what
//     the zone has no key for any more may be a mistake there, and without a DS record resolvers would take unsigned answers.
//   - A zone above that delegates the zone no more counts like one until its servers have been seen without DS records.
func Decide(last *v1beta1.SecureDelegation, f Facts) Decision {
	if last == nil && (len(f.Parents) == 0 || f.Zone.Ends) {
		return Decision{Next: restInterval}
	}
	d := &decider{Facts: f, next: &v1beta1.SecureDelegation{}, seen: sightOf(f)}
	if last != nil {
		d.next = last.DeepCopy()
	}
	d.next.Parents, d.next.ParentElsewhere = nil, ""
	for _, p := range f.Parents {
		if p.IsElsewhere {
			d.next.ParentElsewhere = p.Name
		} else {
			d.next.Parents = append(d.next.Parents, p.UID)
		}
	}
	for _, p := range f.Former {
		d.next.Parents = append(d.next.Parents, p.UID)
	}
	slices.Sort(d.next.Parents)
	d.correctTimes()
	d.followKeys()
	d.choose()
	d.noteAbsence()
	if len(f.Parents) == 0 {
		return d.forget()
	}
	confirm, withdraw := d.confirm()
	out := Decision{Delegation: d.next, Confirm: confirm, Withdraw: withdraw}
	out.Delegated, out.Next = d.verdict()
	out.BehindSince = d.behindSince()
	return out
}

type decider struct {
	Facts
	next *v1beta1.SecureDelegation
	seen sight
}

// correctTimes has nothing be waited for that was noted while the clock was ahead, maybe by years. Nothing of it can have been later than now.
func (d *decider) correctTimes() {
	now := metav1.NewTime(d.Now.Truncate(time.Second))
	correct := func(t *metav1.Time) {
		if t != nil && t.After(now.Time) {
			*t = now
		}
	}
	correct(d.next.AbsentSince)
	for i := range d.next.Keys {
		correct(&d.next.Keys[i].ServedSince)
		correct(d.next.Keys[i].ChangedAt)
	}
}

// followKeys takes over which keys the zone's servers have.
func (d *decider) followKeys() {
	if !d.Zone.HasOthers {
		d.next.Keys = slices.DeleteFunc(d.next.Keys, func(k v1beta1.DelegatedKey) bool {
			return !slices.Contains(d.Zone.Keys, k.DS) && !(d.Zone.IsTheirs && k.Published)
		})
	}
	if !d.Zone.IsWhole {
		return
	}
	for _, ds := range d.Zone.Keys {
		if find(d.next, ds) == nil && len(d.next.Keys) < maxKeys {
			d.next.Keys = append(d.next.Keys, v1beta1.DelegatedKey{DS: ds, ServedSince: metav1.NewTime(d.Now.Truncate(time.Second))})
		}
	}
	slices.SortFunc(d.next.Keys, func(a, b v1beta1.DelegatedKey) int {
		return cmp.Or(a.ServedSince.Compare(b.ServedSince.Time), cmp.Compare(a.DS, b.DS))
	})
}

// choose chooses the keys of which the parents are to have DS records. A set that has one of a key which is served is replaced by none but
// another such set.
func (d *decider) choose() {
	wanted := map[string]bool{}
	for _, k := range d.next.Keys {
		isAsked := !d.Zone.IsTheirs || slices.Contains(d.Zone.Announced, k.DS)
		if (k.Published || isAsked && d.untilReady(k) <= 0) && len(wanted) < source.MaxSigners {
			wanted[k.DS] = true
		}
	}
	if slices.ContainsFunc(d.Zone.Announced, func(ds string) bool { return wanted[ds] }) {
		for ds := range wanted {
			if !slices.Contains(d.Zone.Announced, ds) {
				delete(wanted, ds)
			}
		}
	}
	if d.Zone.Ends || len(d.Parents) == 0 {
		clear(wanted)
	}
	for i := range d.next.Keys {
		k := &d.next.Keys[i]
		if k.Published != wanted[k.DS] {
			k.Published, k.ChangedAt = wanted[k.DS], new(metav1.NewTime(d.Now.Truncate(time.Second)))
		}
		if k.Published {
			d.next.TTL = max(d.next.TTL, int64(min(d.ParentTTL, maxTTL)/time.Second))
		}
	}
}

// untilReady is how long resolvers may still have answers from before a key was there.
func (d *decider) untilReady(k v1beta1.DelegatedKey) time.Duration {
	return k.ServedSince.Add(min(d.Zone.TTL, maxTTL) + time.Second).Sub(d.Now) // The status has whole seconds.
}

// noteAbsence takes note of since when nobody answers with a DS record.
func (d *decider) noteAbsence() {
	published := len(d.next.Published()) > 0
	switch {
	case published || d.seen.any:
		d.next.AbsentSince, d.next.SigningMayEnd = nil, false
		d.next.TTL = max(d.next.TTL, int64(min(d.seen.ttl, maxTTL)/time.Second))
	case d.next.AbsentSince == nil && d.seen.all:
		d.next.AbsentSince = new(metav1.NewTime(d.Now.Truncate(time.Second)))
	}
	isForgotten := d.seen.all && d.untilAbsent() <= 0
	d.next.SigningMayEnd = d.Zone.Ends && (isForgotten || d.isKnownToSigner() || d.next.SigningMayEnd)
}

// isKnownToSigner reports whether all DS records of the zone are at zones elsewhere, and the server that signs knows of each.
func (d *decider) isKnownToSigner() bool {
	if !d.seen.all || len(d.next.Parents) > 0 || len(d.next.Keys) == 0 {
		return false
	}
	return d.seen.any && !slices.ContainsFunc(d.next.Keys, func(k v1beta1.DelegatedKey) bool { return d.seen.isAnywhere(k.DS) && !k.Confirmed })
}

// untilAbsent is how long resolvers may still have DS records that no server answers with any more; lookInterval if some may.
func (d *decider) untilAbsent() time.Duration {
	at, absent := d.next.ForgottenAt()
	if !absent {
		return lookInterval
	}
	return at.Sub(d.Now)
}

// forget keeps what was decided for a zone that nobody delegates any more until resolvers have forgotten its DS records, those of the zones
// that delegated it before included.
func (d *decider) forget() Decision {
	left := d.untilAbsent()
	if left <= 0 {
		return Decision{Next: restInterval}
	}
	out := Decision{Delegation: d.next, Next: max(left, lookInterval), BehindSince: d.behindSince()}
	if d.next.AbsentSince == nil {
		out.Delegated = d.leaving()
	}
	return out
}

// confirm chooses what the server that signs is to be told. When signing ends, that is at its end: it may drop a key of which it knows that
// there is no DS record.
func (d *decider) confirm() (confirm, withdraw []string) {
	elsewhere := d.next.ParentElsewhere != "" && len(d.next.Parents) == 0
	if !d.seen.all || d.Zone.Ends && !d.next.SigningMayEnd && !elsewhere {
		return nil, nil
	}
	for _, k := range d.next.Keys {
		switch {
		case k.Published && !k.Confirmed && d.seen.isEverywhere(k.DS), elsewhere && d.Zone.Ends && !k.Confirmed && d.seen.isAnywhere(k.DS):
			confirm = append(confirm, k.DS)
		case d.Zone.Ends && !d.next.SigningMayEnd: // The server that signs has not begun to end it.
		case !k.Published && k.Confirmed && !d.seen.isAnywhere(k.DS):
			withdraw = append(withdraw, k.DS)
		}
	}
	return confirm, withdraw
}

// Keep keeps what was decided, where nothing new can be, toward those parents that still delegate the zone.
func Keep(last *v1beta1.SecureDelegation, parents []types.UID) *v1beta1.SecureDelegation {
	if last == nil {
		return nil
	}
	kept := last.DeepCopy()
	kept.Parents = slices.DeleteFunc(kept.Parents, func(uid types.UID) bool { return !slices.Contains(parents, uid) })
	return kept
}

// Told takes note that the server that signs was told of a key.
func Told(d *v1beta1.SecureDelegation, ds string, confirmed bool) {
	if k := find(d, ds); k != nil {
		k.Confirmed = confirmed
	}
}

// sight is what the servers of the parents answer together. DS records go by the key that they name.
type sight struct {
	// servers are how many there are, known how many of them answered.
	servers, known int
	// all is true if all of them answered, any if one of them has a DS record.
	all, any bool
	// unmatched is true if a server of a zone elsewhere has DS records, and none of them is of a key of the zone.
	unmatched bool
	ttl       time.Duration
	have      map[string]int
}

func sightOf(f Facts) sight {
	s := sight{all: true, have: map[string]int{}}
	for _, p := range slices.Concat(f.Parents, f.Former) {
		s.all = s.all && len(p.Servers) > 0
		for _, a := range p.Servers {
			s.servers++
			if s.all = s.all && a.IsKnown; !a.IsKnown {
				continue
			}
			s.known++
			named := map[string]bool{}
			for _, ds := range a.DS {
				named[f.Zone.Points.Name(ds)] = true
			}
			matches := false
			for key := range named {
				s.have[key]++
				isOwn := slices.Contains(f.Zone.Keys, key)
				if matches = matches || isOwn; !p.IsElsewhere || isOwn {
					s.any, s.ttl = true, max(s.ttl, a.TTL)
				}
			}
			s.unmatched = s.unmatched || p.IsElsewhere && len(named) > 0 && !matches
		}
	}
	return s
}

func (s sight) isEverywhere(ds string) bool { return s.all && s.have[ds] == s.servers }
func (s sight) isAnywhere(ds string) bool   { return s.have[ds] > 0 }

// isLacking reports whether a server has answered without a DS record. One that is silent shows nothing.
func (s sight) isLacking(ds string) bool { return s.have[ds] < s.known }

// isShared reports whether all servers that answered have a DS record.
func (s sight) isShared(ds string) bool { return s.known > 0 && s.have[ds] == s.known }

// KeyTag is the key tag of the data of a DS record.
func KeyTag(ds string) uint16 {
	tag, _ := strconv.ParseUint(keyTag(ds), 10, 16)
	return uint16(tag)
}

// TagsOf are the key tags of DS records, as messages have them.
func TagsOf(records []string) (tags []string) {
	for _, ds := range records {
		tags = append(tags, keyTag(ds))
	}
	return tags
}

// keyTag is the first field of the data of a DS record.
func keyTag(ds string) string {
	tag, _, _ := strings.Cut(ds, " ")
	return tag
}
