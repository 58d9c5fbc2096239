package content

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/guard"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// guardWindow is for how long RRsets that vanished count with those that vanish later: objects that are deleted together reach a zone in
// many passes.
const guardWindow = 10 * time.Minute

// Guard is how much of a zone may vanish, with what is known of its holds.
type Guard struct {
	guard.Guard
	// Confirmed is the plan that somebody has confirmed; empty if none.
	Confirmed string
	// Held is true if the zone's status says that changes are held back.
	Held bool
}

// GuardOf reads the guard of a zone.
func GuardOf(zone *v1beta1.DNSZone) Guard {
	return Guard{guard.Of(zone), zone.Annotations[v1beta1.ConfirmAnnotation], zone.Status.HeldPlan != ""}
}

// Hold is what a guard holds back.
type Hold struct {
	// Plan names exactly these changes; empty if nothing is held back.
	Plan string
	// Removed and Changed are the RRsets that would be deleted, and that would lose values, sorted.
	Removed, Changed []rrset.Key
}

// Keys yields the RRsets that are held back.
func (h Hold) Keys() iter.Seq[rrset.Key] { return slices.Values(slices.Concat(h.Removed, h.Changed)) }

// guardState is what a guard knows of a zone.
type guardState struct {
	Guard
	// since is when the present window began, of how many RRsets the zone has had since then, removed and changed those that vanished.
	since            time.Time
	of               int
	removed, changed map[rrset.Key]bool
	// confirmed are the changes that somebody has confirmed and that are not done, by what is wanted instead.
	confirmed map[rrset.Key]rrset.RRset
	// standing is true while a hold goes on that began before this controller, so that its window is not known.
	standing bool
	// held is what servers go on to hold at the names where something is held back.
	held heldNames
	hold Hold
}

// loss is an RRset that vanishes, with what is wanted instead; that has no values if nothing is.
type loss struct{ have, want rrset.RRset }

// SetGuard sets how much may vanish from now on.
func (z *Zone) SetGuard(g Guard) { z.guard.Guard = g }

// Hold returns what is held back.
func (z *Zone) Hold() Hold { return z.guard.hold }

// IsConfirmationDone reports whether somebody has confirmed a plan and all of it is on the servers. stuck reports whether an RRset could not be
// brought to what is desired.
func (z *Zone) IsConfirmationDone(stuck func(rrset.Key) bool) bool {
	for key := range z.guard.confirmed {
		if stuck(key) {
			return false
		}
	}
	return z.guard.Confirmed != "" && z.guard.hold.Plan == ""
}

// isConfirmed reports whether what is held back may go out by now.
func (g *guardState) isConfirmed() bool { return g.hold.Plan != "" && g.hold.Plan == g.Confirmed }

// Wanted is what servers are to hold: what is desired, and what is held back at names where a guard does so.
func (z *Zone) Wanted() plan.Content {
	if len(z.guard.held) == 0 {
		return z.desired
	}
	return heldContent{z.desired, z.guard.held}
}

// HeldBack yields the RRsets that servers do not hold as desired because of a hold: those that it is about, and whatever else has changed at
// their names.
func (z *Zone) HeldBack() iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		wanted := z.Wanted()
		for name := range z.guard.held {
			for set := range wanted.At(name) {
				if want, _ := z.desired.Get(set.Key); !want.Equal(set) && !yield(set.Key) {
					return
				}
			}
			for set := range z.desired.At(name) {
				if _, stays := wanted.Get(set.Key); !stays && !yield(set.Key) {
					return
				}
			}
		}
	}
}

// Review decides whether what is about to vanish may. have is the content that the zone has now, lacking what is to change there, without
// what is held back already. It returns what servers are to hold, and whether something else is held back than before: then all has to be
// compared once more.
func (z *Zone) Review(have plan.Content, lacking plan.Changes, now time.Time) (want plan.Content, other bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	g := &z.guard
	removed, changed := z.losses(lacking)
	g.renewWindow(z.desired.Len()+len(lacking.Delete)-len(lacking.Create), now)
	for _, set := range lacking.Create {
		delete(g.removed, set.Key) // It is back.
	}
	g.standing = g.standing && len(removed)+len(changed) > 0
	if g.mayRemove(removed, z.desired) {
		noteLosses(g.removed, removed)
		removed = nil
	}
	if g.mayChange(changed) {
		noteLosses(g.changed, changed)
		changed = nil
	}
	g.hold = holdOf(removed, changed)
	if g.isConfirmed() {
		for _, l := range slices.Concat(removed, changed) {
			g.confirmed[l.have.Key] = l.want
		}
		g.hold, g.standing, g.since = Hold{}, false, time.Time{}
	}
	other = z.setHeld(have)
	return z.Wanted(), other
}

// forgetHold has the next review decide anew.
func (z *Zone) forgetHold() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.guard.hold = Hold{}
	z.setHeld(nil)
}

// losses returns the RRsets that would vanish and that nobody has confirmed: those that are to be deleted, and those that are to lose values.
func (z *Zone) losses(lacking plan.Changes) (removed, changed []loss) {
	pending := map[rrset.Key]bool{}
	isHeld := func(set rrset.RRset) bool { _, held := z.guard.held[set.Name]; return held } // It is being restored.
	add := func(to *[]loss, have, want rrset.RRset) {
		pending[have.Key] = true
		if as, ok := z.guard.confirmed[have.Key]; !ok || !as.Equal(want) {
			*to = append(*to, loss{have, want})
		}
	}
	for _, set := range lacking.Delete {
		if !isHeld(set) {
			add(&removed, set, rrset.RRset{})
		}
	}
	for i, set := range lacking.UpdateOld {
		if !isHeld(set) && guard.LosesValues(set, lacking.UpdateNew[i]) {
			add(&changed, set, lacking.UpdateNew[i])
		}
	}
	for _, sets := range z.guard.held {
		for _, set := range sets {
			switch want, wanted := z.desired.Get(set.Key); {
			case wanted && guard.LosesValues(set, want):
				add(&changed, set, want)
			case !wanted:
				add(&removed, set, rrset.RRset{})
			}
		}
	}
	maps.DeleteFunc(z.guard.confirmed, func(key rrset.Key, _ rrset.RRset) bool { return !pending[key] })
	return removed, changed
}

// renewWindow begins a window if there is none; a hold keeps its own. size is how many RRsets the zone has now.
func (g *guardState) renewWindow(size int, now time.Time) {
	if g.removed == nil { // The first look after a start: only the status knows of a hold.
		g.standing, g.confirmed = g.Held, map[rrset.Key]rrset.RRset{}
	}
	if g.removed == nil || g.hold.Plan == "" && now.Sub(g.since) > guardWindow {
		g.since, g.of, g.removed, g.changed = now, 0, map[rrset.Key]bool{}, map[rrset.Key]bool{}
	}
	g.of = max(g.of, size)
}

func (g *guardState) mayRemove(all []loss, desired plan.Content) bool {
	empties := func(l loss) bool {
		if !g.KeepsName(l.have.Name) {
			return false
		}
		for range desired.At(l.have.Name) {
			return false
		}
		return true
	}
	return len(all) == 0 || !g.standing && g.AllowsRemovals(countLosses(g.removed, all), g.of) && !slices.ContainsFunc(all, empties)
}

func (g *guardState) mayChange(all []loss) bool {
	return g.AllowsChanges(countLosses(g.changed, all), g.of) && !(g.standing && g.LimitsChanges() && len(all) > 0)
}

// countLosses counts the RRsets that vanished in a window, and those that are about to.
func countLosses(vanished map[rrset.Key]bool, all []loss) int {
	count := len(vanished)
	for _, l := range all {
		if !vanished[l.have.Key] {
			count++
		}
	}
	return count
}

func noteLosses(vanished map[rrset.Key]bool, all []loss) {
	for _, l := range all {
		vanished[l.have.Key] = true
	}
}

// holdOf returns the hold of losses. Its plan is a hash of each RRset with its values and what is wanted instead.
func holdOf(removed, changed []loss) (h Hold) {
	hash := sha256.New()
	for _, all := range [][]loss{removed, changed} {
		slices.SortFunc(all, func(a, b loss) int { return a.have.Key.Compare(b.have.Key) })
		for _, l := range all {
			fmt.Fprintf(hash, "%s %q %d %q\n", l.have.Key, l.have.Rdata, l.want.TTL, l.want.Rdata)
		}
	}
	for _, l := range removed {
		h.Removed = append(h.Removed, l.have.Key)
	}
	for _, l := range changed {
		h.Changed = append(h.Changed, l.have.Key)
	}
	if len(removed)+len(changed) > 0 {
		h.Plan = hex.EncodeToString(hash.Sum(nil)[:16])
	}
	return h
}

// setHeld has the names of a hold stay as they are: nothing is changed at a name where something is held back, since data that excludes each
// other may be there. It reports whether these are other names than before. z.mu is held.
func (z *Zone) setHeld(have plan.Content) (other bool) {
	last := z.guard.held
	next, other := z.holdNames(have, last)
	if z.guard.held = next; !other {
		return false
	}
	for _, names := range []heldNames{last, next} {
		for name := range names {
			for _, p := range z.primaries {
				p.compareAgain(name)
			}
		}
	}
	return true
}

// holdNames returns the names that are held now, those that were as they were then, and reports whether these are others. z.mu is held.
func (z *Zone) holdNames(have plan.Content, last heldNames) (next heldNames, other bool) {
	next = heldNames{}
	for key := range z.guard.hold.Keys() {
		if sets, known := last[key.Name]; known {
			next[key.Name] = sets
			continue
		}
		other = true
		if set, there := have.Get(key); there {
			next[key.Name] = append(next[key.Name], set)
		}
	}
	for name := range next {
		if _, known := last[name]; known {
			continue
		}
		for set := range have.At(name) {
			isHeld := slices.ContainsFunc(next[name], func(s rrset.RRset) bool { return s.Key == set.Key })
			if !isHeld && !rrset.IsServerMaintained(set.Type) && !z.isForeign(set.Key) {
				next[name] = append(next[name], set)
			}
		}
	}
	return next, other || len(next) != len(last)
}

// heldNames are the RRsets that are held back, by owner name, with all that is ours there.
type heldNames map[string][]rrset.RRset

// heldContent is what is desired, but for names that are held.
type heldContent struct {
	plan.Content
	held heldNames
}

func (c heldContent) Get(key rrset.Key) (rrset.RRset, bool) {
	sets, held := c.held[key.Name]
	if !held {
		return c.Content.Get(key)
	}
	if i := slices.IndexFunc(sets, func(s rrset.RRset) bool { return s.Key == key }); i >= 0 {
		return sets[i], true
	}
	return rrset.RRset{}, false
}

func (c heldContent) At(name string) iter.Seq[rrset.RRset] {
	if sets, held := c.held[name]; held {
		return slices.Values(sets)
	}
	return c.Content.At(name)
}

func (c heldContent) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for set := range c.Content.All() {
			if _, held := c.held[set.Name]; !held && !yield(set) {
				return
			}
		}
		seq.FlatMap(maps.Values(c.held), slices.Values[[]rrset.RRset])(yield)
	}
}

func (c heldContent) Len() int { return seq.Count(c.All()) }
