package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// zoneState is what is kept of a zone between passes, which never run at the same time. All of it can be made anew from
// Kubernetes and the servers.
type zoneState struct {
	uid     types.UID
	content *content.Zone

	secondaries map[types.NamespacedName]*host.Follower
	// hosts is what hosts know between passes.
	hosts host.Memory
	// owned are those on which the zone may have values of its own.
	owned ownedHosts
	// verified has, by pod, how far the content of secondaries is known to follow from the primaries' (only of several primaries): a
	// *verification. Servers are worked on at the same time.
	verified sync.Map

	// dnssec is how the zone was signed when its signer was last looked at.
	dnssec      *v1beta1.DNSSECStatus
	dnssecKnown bool
	// chain is what was decided about the zone's DS records in the zones above.
	chain chainState

	// serving are the pods that had the zone after the last pass.
	serving []types.NamespacedName
	// failingSince has, by pod, since when primaries could not be brought along.
	failingSince map[types.NamespacedName]time.Time

	// bulkEnded is when a pass that changed many RRsets ended last, pause how long the next one should wait after it.
	bulkEnded time.Time
	pause     time.Duration

	// goneSince is when the zone's deletion from its servers began.
	goneSince time.Time

	last lastOutcome
	// published is the desired zone as it was last when its name servers had addresses.
	published *source.Zone
	// arrivals are those that this process has recorded last, nil before: caches lag behind.
	arrivals *v1beta1.ZoneArrivals
	// served is true once a pass has put the zone on servers, or may have.
	served bool
}

// lastOutcome is what the last event said that is neither in the desired zone nor of one object.
type lastOutcome struct {
	known        bool
	programmed   status.Verdict
	unprogrammed map[rrset.Key]status.Verdict
	desired      *source.Zone
}

// notePublished notes what a pass publishes of a zone that has servers. Of one that was built anew it returns how its name servers
// have changed without its own specification.
func (s *zoneState) notePublished(desired *source.Zone, served, anew bool) string {
	was := s.published
	if !served || desired.NameServers.Waiting != "" {
		return ""
	}
	s.published = desired
	if !anew || was == nil || was.Ref.Generation != desired.Ref.Generation {
		return ""
	}
	return desired.ChangedNameServers(was)
}

// goingSince returns when the zone's deletion from its servers began: now, when nothing is known of it. It may have waited long before.
func (s *zoneState) goingSince(now time.Time) time.Time {
	if s.goneSince.IsZero() {
		s.goneSince = now
	}
	return s.goneSince
}

// While many objects change, each pass costs every server of the zone an update or a transfer, whatever it brings: passes that
// follow each other at once would bring few. The pauses grow while this goes on. A change of little is never followed by one.
const (
	bulkSize      = 4
	bulkPause     = 100 * time.Millisecond
	lastBulkPause = 4 * bulkPause
)

// noteBulk remembers when a pass ended if it changed many RRsets.
func (s *zoneState) noteBulk(changed int, at time.Time) {
	if changed < bulkSize {
		return
	}
	if s.pause = min(2*s.pause, lastBulkPause); at.Sub(s.bulkEnded) > 2*lastBulkPause {
		s.pause = bulkPause
	}
	s.bulkEnded = at
}

// bulkWait returns how long the next pass should wait, because the one before it changed many RRsets.
func (s *zoneState) bulkWait(now time.Time) time.Duration { return s.bulkEnded.Add(s.pause).Sub(now) }

// secondary finds or makes the state of a secondary.
func (s *zoneState) secondary(pod types.NamespacedName) *host.Follower {
	if s.secondaries[pod] == nil {
		s.secondaries[pod] = &host.Follower{}
	}
	return s.secondaries[pod]
}

// keepHosts forgets what is known of servers that are no longer among the zone's.
func (s *zoneState) keepHosts(servers []observe.Server) {
	ids := sets.New[types.NamespacedName]()
	for _, server := range servers {
		ids.Insert(host.IDOf(server))
	}
	s.hosts.KeepOnly(ids)
	maps.DeleteFunc(s.secondaries, func(id types.NamespacedName, _ *host.Follower) bool { return !ids.Has(id) })
	s.verified.Range(func(id, _ any) bool {
		if !ids.Has(id.(types.NamespacedName)) {
			s.verified.Delete(id)
		}
		return true
	})
}

// verification is how far a secondary was found to hold what the primaries do.
type verification struct {
	isComplete bool
	compared   host.Comparison
}

// verificationOf finds or makes that of a secondary.
func (s *zoneState) verificationOf(pod types.NamespacedName) *verification {
	known, _ := s.verified.LoadOrStore(pod, &verification{})
	return known.(*verification)
}

// untilTransfer returns how long the zone may rest until a secondary is to be ordered to transfer it for the first time;
// idleInterval if none is.
func (s *zoneState) untilTransfer(now time.Time) time.Duration {
	after := idleInterval
	for _, known := range s.secondaries {
		if wait, due := known.UntilTransfer(now); due {
			after = min(after, max(wait, firstInterval))
		}
	}
	return after
}

// noteServing remembers which servers have the zone, and reports whether they are others than before.
func (s *zoneState) noteServing(servers []statuswriter.ServerOutcome) (changed bool) {
	var serving []types.NamespacedName
	for _, out := range servers {
		if out.HasZone {
			serving = append(serving, host.IDOf(out.Server))
		}
	}
	changed = !slices.Equal(serving, s.serving)
	s.serving = serving
	return changed
}

// zoneStates keeps the state of every zone, by key. The zero value is empty.
type zoneStates struct{ sync.Map }

// stateOf returns the state of a zone, which is empty for one that is new.
func (s *zoneStates) stateOf(zone *v1beta1.DNSZone) *zoneState {
	key := membership.KeyOfZone(zone)
	if known, ok := s.Load(key); ok && known.(*zoneState).uid == zone.UID {
		return known.(*zoneState)
	}
	state := &zoneState{uid: zone.UID, content: content.NewZone(), secondaries: map[types.NamespacedName]*host.Follower{}}
	s.Store(key, state)
	return state
}
