package desired

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// idleTimeout is how long the desired state of a zone that nobody asks about is kept.
const idleTimeout = 10 * time.Minute

// Zone is the desired state of one zone at one moment. It is immutable.
type Zone struct {
	Key      ZoneKey
	Declared *syncstatus.DesiredState
	zoneServers
	// Since is when Declared was made. Answers from before it prove nothing: what they lack may have been programmed since.
	Since time.Time

	object *v1beta1.DNSZone
	// changes is the zoneState's when the snapshot was begun.
	changes uint64
	// content is nil when the zone cannot be read.
	content *source.Zone
	// covering are the names in below that matter to what the zone declares.
	covering func() []string
}

// zoneServers is what a zone takes from instances, pods, providers and other zones.
type zoneServers struct {
	Servers    []observe.Server
	generation uint64 // Index.generation
	keys       hostKeys
	opts       source.Options
	refusal    membership.Refusal
	// parent is the zone above that is served, if there is one.
	parent *ZoneKey
	// below are the canonical names of the zones below this one that are declared on the same instances or providers, sorted.
	below map[Key][]string
}

// Name is the zone's DNS name without the final dot.
func (z *Zone) Name() string { return strings.TrimSuffix(z.Declared.ZoneName(), ".") }

// TransferKey names the Secret with the key to ask one of the zone's servers with; zero if there is none.
func (z *Zone) TransferKey(s observe.Server) types.NamespacedName { return z.keys[hostKey(s)] }

// Below are the canonical names of zones below this one that may hide, on a server, what it declares: the server answers from the zone
// with the longest name (RFC 1034 section 4.3.2). Whether it has them, it has to be asked.
func (z *Zone) Below(s observe.Server) []string {
	below := z.below[hostKey(s)]
	if len(below) == 0 {
		return nil
	}
	covering := z.covering()
	return slices.DeleteFunc(slices.Clone(below), func(name string) bool { return !slices.Contains(covering, name) })
}

// CutsIn are the names at or above those in an answer at which the zone declares a delegation, or below which its servers have another zone.
func (z *Zone) CutsIn(m *dns.Msg) []string {
	below := z.allBelow()
	return dnssec.CutsIn(m, z.Declared.ZoneName(), func(name string) bool {
		_, served := slices.BinarySearch(below, name)
		return served || len(z.Declared.QuestionFor(rrset.Key{Name: name, Type: dns.TypeNS}).Want.Rdata) > 0
	})
}

// HasBelow compares the zones below two zones.
func (z *Zone) HasBelow(o *Zone) bool { return maps.EqualFunc(z.below, o.below, slices.Equal) }

// allBelow are the names of all zones below it on any of its instances.
func (z *Zone) allBelow() []string {
	var all []string
	for _, names := range z.below {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// zoneState is the desired state of one zone that somebody has asked about.
type zoneState struct {
	key ZoneKey

	// Under the index's lock: what the next snapshot has to look at. It takes that when it is begun; changes counts all that
	// there ever was, so that the last snapshot is outdated from the change on until the next one is there.
	dirty   map[Key]struct{}
	changes uint64
	// stale is true when the zone itself changed, or another one of its name.
	stale bool
	// built is true once the objects of the zone are in the builder: from then on dirty is kept.
	built bool
	last  *Zone
	used  time.Time

	// mu is held while a snapshot is made.
	mu      sync.Mutex
	builder *source.Builder
	// builtFrom and builtWith are what builder was made from; err is why there is none.
	builtFrom *v1beta1.DNSZone
	builtWith source.Options
	err       error
	book      *syncstatus.DesiredCache
}

// markStale makes the next snapshot look at the zone itself. The index's lock is held.
func (s *zoneState) markStale() {
	s.stale = true
	s.changes++
}

// Zone is the present snapshot of a zone; nil when there is no such zone.
func (x *Index) Zone(key ZoneKey) *Zone {
	x.mu.Lock()
	x.sweepIdleZones()
	if x.members.Zone(key) == nil {
		x.mu.Unlock()
		return nil
	}
	s := x.zones[key]
	if s == nil {
		s = &zoneState{key: key, dirty: map[Key]struct{}{}, stale: true}
		x.zones[key] = s
	}
	s.used = time.Now()
	current := x.currentZone(s)
	x.mu.Unlock()
	if current != nil {
		return current
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.renewZone(s)
}

// currentZone is the last snapshot if nothing has changed since it was made, else nil. x.mu is held.
func (x *Index) currentZone(s *zoneState) *Zone {
	if s.last == nil || s.last.changes != s.changes || s.last.generation != x.generation.Load() {
		return nil
	}
	return s.last
}

// sweepIdleZones forgets zones that nobody asks about. x.mu is held.
func (x *Index) sweepIdleZones() {
	now := time.Now()
	if now.Sub(x.swept) < time.Minute {
		return
	}
	x.swept = now
	for key, s := range x.zones {
		if now.Sub(s.used) > idleTimeout {
			delete(x.zones, key)
		}
	}
}

// renewZone makes the present snapshot. s.mu is held.
func (x *Index) renewZone(s *zoneState) *Zone {
	x.mu.Lock()
	zone, last := x.members.Zone(s.key), x.currentZone(s)
	if zone == nil || last != nil {
		x.mu.Unlock()
		return last
	}
	last, stale := s.last, s.stale
	z := &Zone{Key: s.key, object: zone, changes: s.changes}
	s.stale = false
	x.mu.Unlock()

	if generation := x.generation.Load(); last != nil && !stale && last.generation == generation {
		z.zoneServers = last.zoneServers
	} else {
		z.zoneServers = x.serversOfZone(zone, generation)
	}
	rebuild := s.builtFrom == nil || s.builtFrom.UID != zone.UID || s.builtFrom.Generation != zone.Generation || !s.builtWith.SameServers(z.opts)
	if rebuild {
		s.builtFrom, s.builtWith, s.book = zone, z.opts, syncstatus.NewDesiredCache()
		s.builtWith.Owns = x.members.OwnsEndpoints(s.key)
		s.builder, s.err = source.NewBuilder(zone, s.builtWith)
	}
	changed := x.takeDirty(s, rebuild)
	if last != nil && !rebuild && len(changed) == 0 && last.object == zone && last.refusal == z.refusal {
		z.Declared, z.content, z.Since = last.Declared, last.content, last.Since
	} else {
		x.declare(s, z, last, changed)
	}
	z.covering = sync.OnceValue(func() []string { return z.Declared.Covering(z.allBelow()) })
	x.mu.Lock()
	s.last = z
	x.mu.Unlock()
	return z
}

// takeDirty hands out the objects that the zone has to look at: those that changed, or all of them. Nobody else gets them. It waits for the end
// of a change of the zone, until which it has some of its objects alone.
func (x *Index) takeDirty(s *zoneState, all bool) []membership.Member {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.WaitForSteps(x.members, s.key)
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

// declare brings the desired content up to date. Objects that leave the zone are judged, but no longer declare anything.
func (x *Index) declare(s *zoneState, z, last *Zone, changed []membership.Member) {
	var problem *syncstatus.Problem
	if z.refusal != (membership.Refusal{}) {
		problem = &syncstatus.Problem{Reason: z.refusal.Reason, Message: z.refusal.Message}
	}
	if s.err != nil {
		problem = &syncstatus.Problem{Reason: status.Invalid, Message: s.err.Error()}
		z.Declared, z.Since = s.book.Update(z.object, nil, problem, slices.Values(changed)), time.Now()
		return
	}
	for _, m := range changed {
		if m.Role.Declares() {
			s.builder.Set(m.Object)
		} else {
			s.builder.Remove(m.Key)
		}
	}
	z.content = s.builder.Zone()
	if last != nil && last.content != nil {
		for key := range z.content.ChangedObjects(last.content) { // whom the change of others concerns
			changed = append(changed, x.members.Member(z.Key, key))
		}
	}
	z.Declared = s.book.Update(z.object, z.content, problem, slices.Values(changed))
	z.Since = time.Now()
}
