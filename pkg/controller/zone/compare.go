package zone

import (
	"iter"
	"maps"
	"slices"
	"weak"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// primaryState is what is known of a zone on one primary between passes. It does not keep the content of a zone's only primary
// in memory: that is the observer's, which drops it when nobody asks for a while.
type primaryState struct {
	// soa is what the server had when it was last compared; the zero SOA when it never was.
	soa rrset.SOA
	// difference is that between what was desired and what mirror held. bottom is, for a server that was not the reference
	// itself, what the reference held.
	difference     plan.Difference
	desired        *source.Zone
	mirror, bottom weak.Pointer[observe.Mirror]
	// kept holds on to mirror when there are several primaries: what somebody adds to one of them is told from what is left over
	// there by comparing with it, and would be deleted without.
	kept     *observe.Mirror
	overlaid bool
	prune    bool
	refused  map[rrset.Key]refusal
	// names are owner names at which something else has changed since.
	names map[string]struct{}
}

// primary finds or makes the state of a primary.
func (s *zoneState) primary(at pod) *primaryState {
	if s.primaries[at] == nil {
		s.primaries[at] = &primaryState{}
	}
	return s.primaries[at]
}

// keepPrimaries forgets the primaries that are not among the given.
func (s *zoneState) keepPrimaries(present []*primary) {
	maps.DeleteFunc(s.primaries, func(at pod, _ *primaryState) bool {
		return !slices.ContainsFunc(present, func(q *primary) bool { return podOf(q.server) == at })
	})
}

// compared tells whether anything is known.
func (p *primaryState) compared() bool { return p.desired != nil }

// look has a name compared anew.
func (p *primaryState) look(name string) {
	if p.names == nil {
		p.names = map[string]struct{}{}
	}
	p.names[name] = struct{}{}
}

func (p *primaryState) lookAtAll(sets plan.Map) {
	for key := range sets {
		p.look(key.Name)
	}
}

// compare brings up to date what a primary lacks that holds mirror. bottom is the content of the reference, beyond which
// the primary is to hold what is desired; nil when it is the reference itself.
func (s *zoneState) compare(p *primaryState, mirror, bottom *observe.Mirror) {
	for _, key := range s.oldGlue(mirror) {
		s.retire(key)
	}
	p.lookAtAll(s.added)
	want, owned := s.wanted(bottom)
	if names, ok := s.changedNames(p, mirror, bottom); ok {
		p.difference.Update(names, want, mirror, owned)
	} else {
		p.difference.Reset(want, mirror, owned)
	}
	p.soa, p.desired, p.mirror, p.overlaid, p.prune, p.names = mirror.SOA, s.desired, weak.Make(mirror), bottom != nil, s.prune, nil
	p.lookAtAll(s.added) // What is added now is part of what the reference holds later.
	p.kept = nil
	if len(s.primaries) > 1 {
		p.kept = mirror
	}
	p.bottom = weak.Pointer[observe.Mirror]{}
	if bottom != nil {
		p.bottom = weak.Make(bottom)
	}
}

// wanted is what a primary is to hold, and what of its content that is not wanted may be deleted.
func (s *zoneState) wanted(bottom *observe.Mirror) (want plan.Content, owned func(rrset.Key) bool) {
	switch {
	case bottom != nil && len(s.added) > 0:
		both := plan.Overlay{Top: s.added, Bottom: bottom, Hide: nothing}
		return plan.Overlay{Top: s.desired, Bottom: both, Hide: s.owned}, everything
	case bottom != nil:
		return plan.Overlay{Top: s.desired, Bottom: bottom, Hide: s.owned}, everything
	case len(s.added) > 0:
		return plan.Overlay{Top: s.desired, Bottom: s.added, Hide: s.owned}, s.owned
	}
	return s.desired, s.owned
}

func nothing(rrset.Key) bool { return false }

// additions notes the RRsets that somebody else has put on a primary since it was last seen: they are no leftovers, and are
// to be on all primaries. What has gone from it again is noted no more.
func (s *zoneState) additions(p *primaryState, mirror *observe.Mirror) {
	was := p.mirror.Value()
	if was == nil {
		return
	}
	for name := range mirror.ChangedNames(was) {
		for set := range was.At(name) {
			if _, there := mirror.Get(set.Key); !there {
				delete(s.added, set.Key)
			}
		}
		for set := range mirror.At(name) {
			_, before := was.Get(set.Key)
			_, added := s.added[set.Key]
			if (!before || added) && s.foreign(set.Key) {
				s.added[set.Key] = set
			}
		}
	}
}

// settled forgets the additions that every primary holds, or that are somebody else's no more, and tells whether there were
// any: until the next comparison they look wanted.
func (s *zoneState) settled(primaries []*primary) (some bool) {
	for key, set := range s.added {
		lacks := func(q *primary) bool {
			if q.seen.Mirror == nil {
				return true
			}
			has, _ := q.seen.Mirror.Get(key)
			return !has.Equal(set)
		}
		if !s.foreign(key) || !slices.ContainsFunc(primaries, lacks) {
			delete(s.added, key)
			some = true
		}
	}
	return some
}

// foreign tells whether an RRset that a server holds is neither desired nor ours to delete.
func (s *zoneState) foreign(key rrset.Key) bool {
	_, wanted := s.desired.Get(key)
	return !wanted && !s.owned(key) && !rrset.Maintained(key.Type)
}

// everything on a server that is not the reference gives way: all primaries hold the same.
func everything(rrset.Key) bool { return true }

// changedNames are the names to compare anew; not ok when that is all of them, because what was compared last is not known.
func (s *zoneState) changedNames(p *primaryState, mirror, bottom *observe.Mirror) (names iter.Seq[string], ok bool) {
	was, wasBottom := p.mirror.Value(), p.bottom.Value()
	if was == nil || p.desired == nil || p.overlaid != (bottom != nil) || p.overlaid && wasBottom == nil || p.prune != s.prune {
		return nil, false
	}
	all := []iter.Seq[string]{maps.Keys(p.names), s.desired.ChangedNames(p.desired), mirror.ChangedNames(was)}
	if bottom != nil {
		all = append(all, bottom.ChangedNames(wasBottom))
	}
	return concat(all), true
}

func concat[T any](all []iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, one := range all {
			for v := range one {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// oldGlue are the addresses of name servers that a copy of the zone names at its apex and that are no longer desired
// there. The zone object put them there, with the NS RRset that is ours alone, so they leave with it.
func (s *zoneState) oldGlue(m *observe.Mirror) []rrset.Key {
	apex := rrset.Key{Name: s.desired.Name, Type: dns.TypeNS}
	have, _ := m.Get(apex)
	want, _ := s.desired.Get(apex)
	var keys []rrset.Key
	for _, host := range have.Rdata {
		if !slices.Contains(want.Rdata, host) && rrset.IsSubdomain(host, s.desired.Name) {
			keys = append(keys, rrset.Key{Name: host, Type: dns.TypeA}, rrset.Key{Name: host, Type: dns.TypeAAAA})
		}
	}
	return keys
}
