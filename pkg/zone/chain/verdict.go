package chain

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// verdict says how far the zone is, and when to look again.
func (d *decider) verdict() (status.Verdict, time.Duration) {
	published := d.next.Published()
	switch {
	case d.Zone.Ends && d.seen.any && d.next.ParentElsewhere != "":
		return status.SigningWaitsForRegistry(d.where(), d.next.SigningMayEnd), lookInterval
	case d.Zone.Ends && d.next.SigningMayEnd && d.untilAbsent() <= 0:
		return status.SigningMayEnd(d.Zone.IsTheirs), waitInterval
	case d.Zone.Ends:
		return d.ending()
	case d.Zone.IsTheirs && len(published) == 0 && d.seen.any:
		return status.DSRecordsDeclared(d.where(), d.others(nil), d.hasMatch()), lookInterval
	case d.Zone.Objection != "":
		return status.CDSNotFollowed(d.Zone.Objection, d.where(), TagsOf(published)), lookInterval
	case d.seen.unmatched:
		return status.RegistryUnmatched(d.where(), d.others(d.Zone.Keys)), restInterval
	case len(published) == 0 && d.next.ParentElsewhere != "" && d.hasMatch():
		return d.allHave(d.matches()), restInterval
	case len(published) == 0 && d.seen.any:
		return status.DSRecordsEarly(d.where()), lookInterval
	case len(published) == 0:
		return d.pending()
	}
	missing := TagsOf(slices.DeleteFunc(slices.Clone(published), func(ds string) bool { return !d.seen.isLacking(ds) }))
	tags, others := TagsOf(published), d.others(published)
	switch {
	case d.next.ParentElsewhere != "" && len(missing)+len(others) > 0:
		return status.RegistryIsBehind(d.where(), missing, others, d.behindSince(), d.hasMatch()), restInterval
	case len(others) > 0 && len(missing) == len(published) && d.seen.all && d.areDeclared():
		return status.DSRecordsDeclared(d.where(), others, d.hasMatch()), lookInterval
	case len(missing) > 0:
		return status.DSRecordsLack(d.where(), missing), lookInterval
	case len(others) > 0:
		return status.DSRecordsLeft(d.where(), others), lookInterval
	case !d.seen.all && d.next.ParentElsewhere == "":
		return d.allHave(tags), lookInterval
	}
	return d.allHave(tags), d.untilChange()
}

// allHave is the verdict if all servers of the parents that answered have the DS records of keys.
func (d *decider) allHave(tags []string) status.Verdict {
	if !d.seen.all {
		return status.ParentsSilent(d.seen.servers-d.seen.known, d.seen.servers, d.where(), tags)
	}
	return status.DSRecordsAtAll(d.seen.servers, d.where(), tags)
}

// ending is the verdict on a zone that is to be signed no more, and that resolvers may still have DS records of.
func (d *decider) ending() (status.Verdict, time.Duration) {
	if d.next.AbsentSince == nil || !d.seen.all {
		return status.SigningWaitsForServers(d.Zone.IsTheirs, d.where(), d.seen.any), lookInterval
	}
	left := d.untilAbsent()
	return status.SigningEndsAt(d.Zone.IsTheirs, d.Now.Add(left)), max(left, time.Second)
}

// leaving is the verdict on a zone that is not delegated any more, while servers of those that delegated it have DS records, or may have.
func (d *decider) leaving() status.Verdict {
	switch {
	case d.Zone.Ends:
		return status.SigningWaitsForServers(d.Zone.IsTheirs, d.where(), d.seen.any)
	case d.seen.any:
		return status.DSRecordsLeft(d.where(), d.others(nil))
	}
	var tags []string
	for _, k := range d.next.Keys {
		tags = append(tags, keyTag(k.DS))
	}
	return status.ParentsSilent(d.seen.servers-d.seen.known, d.seen.servers, d.where(), tags)
}

// pending is the verdict on a zone of which no DS record is to be there yet.
func (d *decider) pending() (status.Verdict, time.Duration) {
	if len(d.next.Keys) == 0 {
		return status.NotSignedEverywhere(), lookInterval
	}
	left := d.untilReady(d.next.Keys[0])
	return status.DSRecordsFrom(d.Now.Add(left)), min(max(left, time.Second), waitInterval)
}

// behindSince is Decision.BehindSince.
func (d *decider) behindSince() (since time.Time) {
	for _, k := range d.next.Keys {
		isOff := k.Published && d.seen.isLacking(k.DS) || !k.Published && d.seen.isAnywhere(k.DS)
		if isOff && k.ChangedAt != nil && (since.IsZero() || k.ChangedAt.Time.Before(since)) {
			since = k.ChangedAt.Time
		}
	}
	return since
}

// matches are the tags of the keys of which all servers that answered have a DS record.
func (d *decider) matches() (tags []string) {
	for _, ds := range d.Zone.Keys {
		if d.seen.isShared(ds) {
			tags = append(tags, keyTag(ds))
		}
	}
	return tags
}

// untilChange is how long nothing changes by itself.
func (d *decider) untilChange() time.Duration {
	next := restInterval
	for _, k := range d.next.Keys {
		if !k.Published {
			next = min(next, max(d.untilReady(k), lookInterval))
		}
	}
	return next
}

// others are the tags of DS records at the parents that are not among some.
func (d *decider) others(published []string) (tags []string) {
	for ds := range d.seen.have {
		if !slices.Contains(published, ds) {
			tags = append(tags, keyTag(ds))
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags) // Keys may share a tag.
}

// areDeclared reports whether no DS record that servers have is one that the zone asked for.
func (d *decider) areDeclared() bool {
	for ds := range d.seen.have {
		if k := find(d.next, ds); k != nil && k.Confirmed {
			return false // It is being deleted.
		}
	}
	return true
}

// hasMatch reports whether a DS record that all servers that answered have is of a key of the zone.
func (d *decider) hasMatch() bool {
	return slices.ContainsFunc(d.Zone.Keys, d.seen.isShared)
}

// where are the names of the parents, present or former.
func (d *decider) where() (names []string) {
	for _, p := range slices.Concat(d.Parents, d.Former) {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}
