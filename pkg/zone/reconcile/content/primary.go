package content

import (
	"iter"
	"maps"
	"slices"
	"time"
	"weak"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// Primary is what is known of a zone on one primary between passes. It does not keep the content of a zone's only primary in
// memory: that is the observer's, which drops it when nobody asks for a while.
type Primary struct {
	// SOA is what the server had when it was last compared, the zero SOA when it never was; Desired is what was desired
	// then, nil when it never was.
	SOA     rrset.SOA
	Desired *source.Zone

	// difference is that between what was desired and what mirror held. bottom is, for a server that was not the reference
	// itself, what the reference held.
	difference     plan.Difference
	mirror, bottom weak.Pointer[observe.Mirror]
	// kept holds on to mirror when there are several primaries: without it, what somebody adds to one of them would look
	// like data that the others have deleted.
	kept     *observe.Mirror
	overlaid bool
	prune    bool
	// shared is true while others write to the primary as well: then it follows no other one, and what is the zone object's alone, the
	// apex, is theirs.
	shared bool
	// owner is who claims values on a shared primary where each writer has its own; empty where an RRset belongs to whoever declares it.
	owner   string
	refused map[rrset.Key]refusal
	// overwritten are the RRsets that somebody else has overwritten lately.
	overwritten map[rrset.Key]*overwrite
	// written is true while the primary was sent something that was not read back.
	written bool
	// lost is the SOA of the version to which an update was sent whose reply was lost; zero if none was. While the primary has that version,
	// the update may still be applied.
	lost rrset.SOA
	// late is, on a primary that others write to as well, when an update of an RRset was sent whose reply was lost.
	late map[rrset.Key]time.Time
	// latest is the latest serial that the primary was seen with or sent, while hasLatest is true.
	latest    uint32
	hasLatest bool
	// names are owner names at which something else has changed since.
	names map[string]struct{}
}

// Primary finds or makes what is known of a primary, to which others write as well if it is shared. With an owner, values are claimed there.
func (z *Zone) Primary(pod types.NamespacedName, shared bool, owner string) *Primary {
	if known := z.primaries[pod]; known == nil || known.shared != shared || known.owner != owner {
		z.primaries[pod] = &Primary{shared: shared, owner: owner}
	}
	return z.primaries[pod]
}

// KeepPrimaries forgets all other primaries.
func (z *Zone) KeepPrimaries(present []types.NamespacedName) {
	maps.DeleteFunc(z.primaries, func(pod types.NamespacedName, _ *Primary) bool { return !slices.Contains(present, pod) })
}

// WasCompared reports whether anything is known.
func (p *Primary) WasCompared() bool { return p.Desired != nil }

// Foreign counts the RRsets on the primary that nobody declares, and returns some of them.
func (p *Primary) Foreign() (int, []rrset.Key) { return p.difference.Foreign() }

// LastCopy returns what the primary held when it was last compared, if it is one of several; otherwise nil.
func (p *Primary) LastCopy() *observe.Mirror { return p.kept }

// Changes returns what a primary with the SOA lacks.
func (z *Zone) Changes(p *Primary, soa rrset.SOA) plan.Changes {
	if p.shared {
		return p.difference.Changes(soa, soa)
	}
	return p.difference.Changes(z.desired.SOA, soa)
}

// IsAtRest reports whether a primary had, when it was last compared, what is desired now, but for what it refused a short
// while ago. It returns what the primary lacks then.
func (z *Zone) IsAtRest(p *Primary, now time.Time) (lacks plan.Changes, rests bool) {
	if p.Desired != z.desired || p.prune != z.prune || len(p.names) > 0 || z.guard.isConfirmed() || p.AwaitsUpdate(p.SOA) || p.hasWaited(now) {
		return lacks, false
	}
	lacks = z.Changes(p, p.SOA)
	return lacks, !p.Sendable(lacks, now).HasChanges()
}

// compareAgain has a name compared anew.
func (p *Primary) compareAgain(name string) {
	if p.names == nil {
		p.names = map[string]struct{}{}
	}
	p.names[name] = struct{}{}
}

func (p *Primary) compareAllAgain(sets plan.Map) {
	for key := range sets {
		p.compareAgain(key.Name)
	}
}

// Compare brings up to date what a primary lacks that holds mirror. bottom is the content of the reference, beyond which
// the primary is to hold what is desired; nil when it is the reference itself.
func (z *Zone) Compare(p *Primary, mirror, bottom *observe.Mirror) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !p.shared {
		for _, key := range z.formerGlue(mirror) {
			z.retire(key, false)
		}
	}
	p.compareAllAgain(z.foreign)
	want, have, deletable := z.sides(p, mirror, bottom)
	switch names, ok := z.changedNames(p, mirror, bottom); {
	case ok:
		p.difference.Update(names, want, have, deletable)
	case p.owner != "":
		p.difference = plan.Difference{}
		p.difference.Update(z.claimedNames(p, mirror), want, have, deletable)
	default:
		p.difference.Reset(want, have, deletable)
	}
	p.SOA, p.Desired, p.mirror, p.overlaid, p.prune, p.names = mirror.SOA, z.desired, weak.Make(mirror), bottom != nil, z.prune, nil
	p.written = false
	p.noteSerial(mirror.SOA.Serial)
	p.compareAllAgain(z.foreign) // What is foreign now is part of what the reference holds later.
	p.kept = nil
	if len(z.primaries) > 1 {
		p.kept = mirror
	}
	p.bottom = weak.Pointer[observe.Mirror]{}
	if bottom != nil {
		p.bottom = weak.Make(bottom)
	}
}

// sides returns what is compared of what a primary is to hold and what it holds, and what of that may be deleted.
func (z *Zone) sides(p *Primary, mirror, bottom *observe.Mirror) (want, have plan.Content, deletable func(rrset.Key) bool) {
	if p.owner != "" {
		view := z.viewOf(p, mirror)
		return view, without(mirror, func(key rrset.Key) bool { return z.isTheirs(key) && !view.Claims(key) }), view.IsDeletable
	}
	if p.shared {
		deletable = func(key rrset.Key) bool { return z.retired[key] }
		isTheirs := func(key rrset.Key) bool {
			return (z.desired.IsApexData(key) || z.desired.IsKept(key)) && !deletable(key)
		}
		return without(z.Wanted(), z.desired.IsApexData), without(mirror, isTheirs), deletable
	}
	want, deletable = z.wanted(bottom)
	if bottom == nil && z.desired.NameServers.Waiting != "" {
		return want, without(mirror, z.isKept), deletable
	}
	return want, mirror, deletable
}

// noteSharedDeclarations has what an object declares, or did last, compared anew on the primaries that others write to as well: the
// zone object may declare the same data, which is no business of theirs. z.mu is held.
func (z *Zone) noteSharedDeclarations(last *source.Zone, object source.ObjectKey) {
	for _, p := range z.primaries {
		if !p.shared {
			continue
		}
		for _, d := range z.desired.Of(object) {
			p.compareAgain(d.Key.Name)
		}
		if last == nil {
			continue
		}
		for _, d := range last.Of(object) {
			z.retire(d.Key, true)
			p.compareAgain(d.Key.Name)
		}
	}
}

// wanted returns what a primary is to hold, and what of its content that is not wanted may be deleted: everything on a
// server that is not the reference, because all primaries hold the same.
func (z *Zone) wanted(bottom *observe.Mirror) (want plan.Content, deletable func(rrset.Key) bool) {
	switch {
	case bottom != nil && len(z.foreign) > 0:
		nothing := func(rrset.Key) bool { return false }
		both := plan.Overlay{Top: z.foreign, Bottom: bottom, Hide: nothing}
		return plan.Overlay{Top: z.published(), Bottom: both, Hide: z.isDeletable}, everything
	case bottom != nil:
		return plan.Overlay{Top: z.published(), Bottom: bottom, Hide: z.isDeletable}, everything
	case len(z.foreign) > 0:
		return plan.Overlay{Top: z.published(), Bottom: z.foreign, Hide: z.isDeletable}, z.isDeletable
	}
	return z.published(), z.isDeletable
}

func everything(rrset.Key) bool { return true }

// NoteForeign keeps the RRsets that somebody else has put on a primary since it was last seen: they are no leftovers, and
// are to be on all primaries. What has gone from it again is dropped.
func (z *Zone) NoteForeign(p *Primary, mirror *observe.Mirror) {
	z.mu.Lock()
	defer z.mu.Unlock()
	was := p.mirror.Value()
	if was == nil {
		return
	}
	for name := range mirror.ChangedNames(was) {
		for set := range was.At(name) {
			if _, there := mirror.Get(set.Key); !there {
				delete(z.foreign, set.Key)
			}
		}
		for set := range mirror.At(name) {
			_, before := was.Get(set.Key)
			_, known := z.foreign[set.Key]
			if (!before || known) && z.isForeign(set.Key) {
				z.foreign[set.Key] = set
			}
		}
	}
}

// KeepForeign keeps all that a primary holds and nobody declares, as if somebody had just put it there: it is to be on all
// primaries.
func (z *Zone) KeepForeign(mirror *observe.Mirror) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for set := range mirror.All() {
		if _, known := z.foreign[set.Key]; !known && z.isForeign(set.Key) {
			z.foreign[set.Key] = set
		}
	}
}

// SettleForeign forgets the foreign RRsets that all mirrors, one of each primary, hold, or that are foreign no more. It
// reports whether there were any: until the next comparison they look desired. A nil mirror holds nothing.
func (z *Zone) SettleForeign(mirrors []*observe.Mirror) (some bool) {
	for key, set := range z.foreign {
		lacks := func(m *observe.Mirror) bool {
			if m == nil {
				return true
			}
			has, _ := m.Get(key)
			return !has.Equal(set)
		}
		if !z.isForeign(key) || !slices.ContainsFunc(mirrors, lacks) {
			delete(z.foreign, key)
			some = true
		}
	}
	return some
}

// NoteWritten notes that the primary is sent something with a serial: until it is compared again, what is there may be ours.
func (p *Primary) NoteWritten(serial uint32) {
	p.written = true
	p.noteSerial(serial)
}

// lateTime is for how long an update whose reply was lost may take effect where nothing keeps it out. A server that was stopped reads what
// it was sent once it goes on.
const lateTime = time.Minute

// NoteLost notes that the reply to an update of the version with an SOA was lost. Where others write as well, updates are not about versions,
// but about the RRsets that they change.
func (p *Primary) NoteLost(have rrset.SOA, changed iter.Seq[rrset.Key], now time.Time) {
	if !p.shared {
		p.lost = have
		return
	}
	if p.late == nil {
		p.late = map[rrset.Key]time.Time{}
	}
	for key := range changed {
		p.late[key] = now
	}
}

// MayStillGet reports whether an update of an RRset may take effect whose reply was lost. Claims outlast that: with an owner, what comes
// late is known to be ours.
func (p *Primary) MayStillGet(key rrset.Key, now time.Time) bool {
	at, sent := p.late[key]
	return sent && p.owner == "" && now.Sub(at) <= lateTime
}

// ForgetLate forgets updates that take effect no more, after a look at the primary.
func (p *Primary) ForgetLate(now time.Time) {
	maps.DeleteFunc(p.late, func(_ rrset.Key, at time.Time) bool { return now.Sub(at) > lateTime })
}

// hasWaited reports whether an update takes effect no more, for which what is retired had to stay.
func (p *Primary) hasWaited(now time.Time) bool {
	for _, at := range p.late {
		if now.Sub(at) > lateTime {
			return true
		}
	}
	return false
}

// AwaitsUpdate reports whether an update whose reply was lost may still be applied to the version with an SOA. Another version prevents that.
func (p *Primary) AwaitsUpdate(soa rrset.SOA) bool { return soa != (rrset.SOA{}) && p.lost == soa }

func (p *Primary) noteSerial(serial uint32) {
	if !p.hasLatest || rrset.SerialLess(p.latest, serial) {
		p.latest, p.hasLatest = serial, true
	}
}

// HasBeenAt reports whether the primary may have had other content with a serial, or with a later one.
func (p *Primary) HasBeenAt(serial uint32) (latest uint32, may bool) {
	return p.latest, p.hasLatest && !rrset.SerialLess(p.latest, serial)
}

// Drift returns what a primary held as desired when it was last seen, as before, and holds otherwise in mirror although nothing was sent to
// it since. It is among what it lacks: whether that is declared otherwise by now does not matter. Of each RRset it returns the values that
// somebody else has added.
func (z *Zone) Drift(before Primary, mirror *observe.Mirror, lacks plan.Changes) map[rrset.Key][]string {
	if before.written || !before.WasCompared() || !rrset.SerialLess(before.SOA.Serial, mirror.SOA.Serial) {
		return nil // A server that came back with an older copy of the zone was not changed by anybody.
	}
	drifted := map[rrset.Key][]string{}
	for key := range lacks.Keys() {
		was, wasDesired := before.Desired.Get(key)
		if has, _ := mirror.Get(key); wasDesired && !before.holds(has, was) {
			drifted[key] = z.AddedValues(has, was.Rdata)
		}
	}
	return drifted
}

// AddedValues returns the values of an RRset that are not desired, and are not among the given ones. With an owner, they stay.
func (z *Zone) AddedValues(has rrset.RRset, known []string) (added []string) {
	want, _ := z.Desired().Get(has.Key)
	for _, value := range has.Rdata {
		if !slices.Contains(known, value) && !slices.Contains(want.Rdata, value) {
			added = append(added, value)
		}
	}
	return added
}

// changedNames returns the names to compare anew; not ok when that is all of them, because what was compared last is not
// known.
func (z *Zone) changedNames(p *Primary, mirror, bottom *observe.Mirror) (names iter.Seq[string], ok bool) {
	was, wasBottom := p.mirror.Value(), p.bottom.Value()
	if was == nil || p.Desired == nil || p.overlaid != (bottom != nil) || p.overlaid && wasBottom == nil || p.prune != z.prune {
		return nil, false
	}
	all := []iter.Seq[string]{maps.Keys(p.names), z.desired.ChangedNames(p.Desired), mirror.ChangedNames(was)}
	if p.owner != "" {
		all = append(all, z.twins(p, mirror, all...))
	}
	if bottom != nil {
		all = append(all, bottom.ChangedNames(wasBottom))
	}
	return seq.Concat(all...), true
}

// formerGlue returns the addresses of name servers that a copy of the zone names at its apex and that are no longer desired
// there. The zone object put them there, with the NS RRset that is ours alone, so they leave with it.
func (z *Zone) formerGlue(m *observe.Mirror) []rrset.Key {
	if z.desired.NameServers.Waiting != "" {
		return nil // The name servers stay as they are.
	}
	apex := rrset.Key{Name: z.desired.Name, Type: dns.TypeNS}
	have, _ := m.Get(apex)
	want, _ := z.desired.Get(apex)
	var keys []rrset.Key
	for _, host := range have.Rdata {
		if !slices.Contains(want.Rdata, host) && rrset.IsSubdomain(host, z.desired.Name) {
			keys = append(keys, rrset.Key{Name: host, Type: dns.TypeA}, rrset.Key{Name: host, Type: dns.TypeAAAA})
		}
	}
	return keys
}
