package engine

import (
	"iter"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// keptFor is how long the desired side of a zone that nobody asks about is kept.
const keptFor = 10 * time.Minute

// side is the desired side of one zone that somebody has asked about.
type side struct {
	key zoneKey

	// Under the index's lock: what the next view has to look at.
	dirty map[object]struct{}
	// stale is true when the zone itself changed, or another one of its name.
	stale bool
	// built is true once the objects of the zone are in the builder: from then on dirty is kept.
	built bool
	view  *view
	used  time.Time

	// mu is held while a view is made.
	mu      sync.Mutex
	builder *source.Builder
	// of and with are what builder was made for, err why there is none.
	of   *v1beta1.DNSZone
	with []netip.Addr
	err  error
	book *syncstatus.Book
}

// view is one zone at one moment. It is immutable.
type view struct {
	zone     *v1beta1.DNSZone
	declared *syncstatus.Declared
	// desired is nil when the zone cannot be read.
	desired *source.Zone
	fleet
	// since is when declared was made. Answers from before it tell nothing about it: what they lack may have been
	// programmed in between.
	since time.Time
}

// fleet is what a zone takes from instances, pods and other zones.
type fleet struct {
	at        uint64 // Index.fleet
	servers   []observe.Server
	instances map[object]*v1beta1.Bind9Instance
	addresses []netip.Addr
	duplicate *v1beta1.DNSZone
}

// view gives the present view of a zone; nil when there is no such zone.
func (x *Index) view(key zoneKey) *view {
	x.mu.Lock()
	x.sweep()
	if x.members.Zone(key) == nil {
		x.mu.Unlock()
		return nil
	}
	s := x.sides[key]
	if s == nil {
		s = &side{key: key, dirty: map[object]struct{}{}, stale: true}
		x.sides[key] = s
	}
	s.used = time.Now()
	current := x.current(s)
	x.mu.Unlock()
	if current != nil {
		return current
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.renew(s)
}

// current is a side's view when nothing has changed since it was made. x.mu is held.
func (x *Index) current(s *side) *view {
	if s.stale || len(s.dirty) > 0 || s.view == nil || s.view.at != x.fleet.Load() {
		return nil
	}
	return s.view
}

// sweep forgets sides that nobody asks about. x.mu is held.
func (x *Index) sweep() {
	now := time.Now()
	if now.Sub(x.swept) < time.Minute {
		return
	}
	x.swept = now
	for key, s := range x.sides {
		if now.Sub(s.used) > keptFor {
			delete(x.sides, key)
		}
	}
}

// renew makes the present view. s.mu is held.
func (x *Index) renew(s *side) *view {
	x.mu.Lock()
	zone, last := x.members.Zone(s.key), x.current(s)
	if zone == nil || last != nil {
		x.mu.Unlock()
		return last
	}
	last, stale := s.view, s.stale
	s.stale = false
	x.mu.Unlock()

	v := &view{zone: zone}
	if at := x.fleet.Load(); last != nil && !stale && last.at == at {
		v.fleet = last.fleet
	} else {
		v.fleet = x.fleetOf(zone)
		v.at = at
	}
	fresh := s.of == nil || s.of.UID != zone.UID || s.of.Generation != zone.Generation || !slices.Equal(s.with, v.addresses)
	if fresh {
		s.of, s.with, s.book = zone, v.addresses, syncstatus.NewBook()
		s.builder, s.err = source.NewBuilder(zone, source.Options{ServerAddresses: v.addresses, Owns: x.members.OwnsEndpoints(s.key)})
	}
	changed := x.take(s, fresh)
	same := last != nil && !fresh && len(changed) == 0 && last.zone == zone && last.duplicate == v.duplicate
	if same {
		v.declared, v.desired, v.since = last.declared, last.desired, last.since
	} else {
		x.declare(s, v, last, changed)
	}
	x.mu.Lock()
	s.view = v
	x.mu.Unlock()
	return v
}

// take gives the objects that the side has to look at: those that changed, or all of them. Nobody else gets them.
func (x *Index) take(s *side, all bool) []membership.Member {
	x.mu.Lock()
	defer x.mu.Unlock()
	var changed []membership.Member
	if all {
		changed = x.members.Members(s.key)
	} else {
		for key := range s.dirty {
			changed = append(changed, x.members.Member(s.key, key))
		}
	}
	clear(s.dirty)
	s.built = true
	return changed
}

// declare brings the desired side up to date. Objects that leave the zone are judged, but no longer declare anything.
func (x *Index) declare(s *side, v, last *view, changed []membership.Member) {
	var problem *syncstatus.Problem
	if v.duplicate != nil {
		problem = &syncstatus.Problem{Reason: status.DuplicateZone, Message: "the zone is already declared by DNSZone " +
			visible(v.duplicate, v.zone.Namespace) + " on the same servers"}
	}
	if s.err != nil {
		problem = &syncstatus.Problem{Reason: status.Invalid, Message: s.err.Error()}
		v.declared, v.since = s.book.Update(v.zone, nil, problem, slices.Values(changed)), time.Now()
		return
	}
	for _, m := range changed {
		if m.Role.Declares() {
			s.builder.Set(m.Object)
		} else {
			s.builder.Remove(m.Key)
		}
	}
	v.desired = s.builder.Zone()
	v.declared = s.book.Update(v.zone, v.desired, problem, x.concerned(s.key, v, last, changed))
	v.since = time.Now()
}

// concerned yields the objects that changed and those that the change of others concerns.
func (x *Index) concerned(zone zoneKey, v, last *view, changed []membership.Member) iter.Seq[membership.Member] {
	return func(yield func(membership.Member) bool) {
		for _, m := range changed {
			if !yield(m) {
				return
			}
		}
		if last == nil || last.desired == nil {
			return
		}
		for key := range v.desired.ChangedObjects(last.desired) {
			if !yield(x.members.Member(zone, key)) {
				return
			}
		}
	}
}

// fleetOf finds a zone's servers.
func (x *Index) fleetOf(zone *v1beta1.DNSZone) fleet {
	f := fleet{instances: map[object]*v1beta1.Bind9Instance{}}
	all := x.liveInstances("")
	instances := membership.InstancesOf(zone, all)
	f.servers = x.serversOf(instances, x.podsOf(instances))
	for _, i := range instances {
		f.instances[object{Kind: syncstatus.InstanceKind.Kind, Namespace: i.Namespace, Name: i.Name}] = i
	}
	f.addresses = membership.ServiceAddresses(instances, v1beta1.RolePrimary)
	if namesakes := x.informers.named(source.DNSName(zone)); len(namesakes) > 1 {
		f.duplicate = membership.DuplicateOf(zone, namesakes, all)
	}
	return f
}

func (x *Index) liveInstances(namespace string) []*v1beta1.Bind9Instance {
	return membership.LiveInstances(inNamespace[*v1beta1.Bind9Instance](x.informers.instances, namespace))
}

func (x *Index) podsOf(instances []*v1beta1.Bind9Instance) []*corev1.Pod {
	var pods []*corev1.Pod
	seen := map[string]bool{}
	for _, i := range instances {
		if !seen[i.Namespace] {
			seen[i.Namespace] = true
			pods = append(pods, inNamespace[*corev1.Pod](x.informers.pods, i.Namespace)...)
		}
	}
	return pods
}
