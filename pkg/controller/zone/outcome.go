package zone

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// conclude turns what the primaries serve now into the outcome of the pass: an RRset is programmed when every primary
// was asked and answered with it.
func (p *pass) conclude() {
	p.event.Unprogrammed = map[rrset.Key]status.Verdict{}
	var failed []*primary
	for _, q := range p.primaries {
		if p.event.Changes.Len() == 0 {
			p.event.Changes = q.applied
		}
		if q.err == nil && !q.seen.Authoritative {
			q.err = p.absent(q)
			p.event.Pending = max(p.event.Pending, p.state.desired.Len())
		}
		if q.err != nil {
			failed = append(failed, q)
			continue
		}
		p.event.Serial = q.seen.Serial
		p.event.Pending = max(p.event.Pending, q.rest.Len())
		for key := range q.rest.Keys() {
			p.event.Unprogrammed[key] = p.unprogrammed(q, key)
		}
		for _, c := range q.rest.Conflicts {
			p.event.Unprogrammed[c.Want.Key] = blocked(q, c)
		}
		if p.event.Foreign == 0 {
			p.event.Foreign, p.event.ForeignSample = q.known.difference.Foreign()
		}
	}
	for _, q := range p.primaries {
		if q.err == nil {
			q.known.pardon(p.stuck)
		}
	}
	p.serials.expect(membership.KeyOfZone(p.zone), p.event.Serial)
	p.tellSigning()
	p.countDrift()
	if !p.event.Paused {
		p.event.Pending = 0
	}
	if len(failed) > 0 {
		q := failed[0]
		p.problem(status.PrimaryFailed, "%d of %d primaries cannot be programmed; %s: %v%s",
			len(failed), len(p.primaries), q.server.Pod, q.err, p.remedy(q))
		return
	}
	p.release()
	p.state.forget(p.gone)
	if p.state.settled(p.primaries) {
		p.world.wake(membership.KeyOfZone(p.zone))
	}
}

// absent says why a primary does not serve the zone although nothing has failed.
func (p *pass) absent(q *primary) error {
	if p.event.Paused {
		return errors.New("it does not have the zone, which is paused: nothing is created")
	}
	return fmt.Errorf("it does not serve the zone yet: %s", q.seen.Message())
}

// release lets go of the objects whose data no primary holds any more, of each once: the writer of statuses tries until it
// is done. One that changes and is still leaving then, or that the zone has again and loses again, comes back through set.
func (p *pass) release() {
	for key, o := range p.state.leaving {
		if !slices.ContainsFunc(p.state.keysOf(o), p.stuck) {
			p.event.Released = append(p.event.Released, o)
			delete(p.state.leaving, key)
		}
	}
}

// stuck tells whether an RRset could not be brought to what is desired.
func (p *pass) stuck(key rrset.Key) bool {
	_, stuck := p.event.Unprogrammed[key]
	return stuck
}

// gone tells whether an RRset was seen to be on no primary.
func (p *pass) gone(key rrset.Key) bool {
	for _, q := range p.primaries {
		if q.seen.Mirror == nil {
			return false
		}
		if _, there := q.seen.Mirror.Get(key); there {
			return false
		}
	}
	return true
}

// unprogrammed says why a primary does not serve an RRset as desired.
func (p *pass) unprogrammed(q *primary, key rrset.Key) status.Verdict {
	if p.event.Paused {
		return status.No(status.Paused, fmt.Sprintf("%s does not serve %s %s as declared, and the zone is paused: it is only watched",
			q.server.Pod, key.Name, dns.TypeToString[key.Type]))
	}
	if r, refused := q.known.refused[key]; refused {
		return status.No(status.ReconcileFailed, fmt.Sprintf("%s: %v", q.server.Pod, r.err))
	}
	return status.No(status.ReconcileFailed, fmt.Sprintf("%s took the update without an error and does not serve %s %s as declared",
		q.server.Pod, key.Name, dns.TypeToString[key.Type]))
}

// blocked says what somebody else put into the zone that an RRset cannot stand beside.
func blocked(q *primary, c plan.Conflict) status.Verdict {
	var foreign []string
	for _, key := range c.Foreign {
		foreign = append(foreign, dns.TypeToString[key.Type])
	}
	return status.No(status.Conflict, fmt.Sprintf("%s holds %s data at %s that no object declares and that cannot stand beside %s; remove it or rename the record",
		q.server.Pod, strings.Join(foreign, ", "), c.Want.Name, dns.TypeToString[c.Want.Type]))
}

// sumUp completes the event: which objects have to hear of it, beside those that changed, and what it says of objects that
// other zones have.
func (p *pass) sumUp() {
	s := p.state
	last := s.told
	s.told = lastWord{any: true, problem: p.event.Problem, unprogrammed: p.event.Unprogrammed, desired: p.event.Desired}
	p.event.All = p.event.All || !last.any || last.problem != p.event.Problem
	if p.event.Desired == nil || last.desired == nil {
		p.event.All = true
		return
	}
	touched := map[source.ObjectKey]struct{}{}
	for _, key := range p.event.Touched {
		touched[key] = struct{}{}
	}
	for key := range p.event.Desired.ChangedObjects(last.desired) {
		touched[key] = struct{}{}
	}
	for key := range differing(last.unprogrammed, p.event.Unprogrammed) {
		set, _ := p.event.Desired.RRsets.Get(key)
		for _, owners := range set.Owners {
			for _, ref := range owners {
				touched[source.ObjectKey{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}] = struct{}{}
			}
		}
	}
	for _, o := range p.event.Released {
		delete(touched, source.KeyOf(o)) // It is told that it is let go.
	}
	p.event.Touched = slices.Collect(maps.Keys(touched))
}

// differing yields the RRsets of which the verdicts do not say the same.
func differing(a, b map[rrset.Key]status.Verdict) map[rrset.Key]struct{} {
	keys := map[rrset.Key]struct{}{}
	for key, verdict := range a {
		if b[key] != verdict {
			keys[key] = struct{}{}
		}
	}
	for key, verdict := range b {
		if a[key] != verdict {
			keys[key] = struct{}{}
		}
	}
	return keys
}

// alsoSelected lists the objects that the zone selects and older zones have.
func (p *pass) alsoSelected() {
	keys := slices.SortedFunc(maps.Keys(p.state.also), func(a, b source.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	p.event.AlsoSelected, p.event.OlderZones = keys, p.world.zonesOf(keys)
}
