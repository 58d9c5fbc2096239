package zone

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/zone/content"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// zoneState is what is kept of a zone between passes, which never run at the same time. All of it can be made anew from
// Kubernetes and the servers.
type zoneState struct {
	uid     types.UID
	content *content.Zone

	// mu guards the maps, by pod: servers are worked on at the same time.
	mu          sync.Mutex
	secondaries map[types.NamespacedName]*secondaryState
	// verified are the secondaries whose content is known to follow from the primaries' (only of several primaries).
	verified map[types.NamespacedName]struct{}
	configs  map[types.NamespacedName]zoneConfig
	// demoted are the primaries that are known to have the zone as secondaries, because another signs it.
	demoted map[types.NamespacedName]struct{}

	// dnssec is how the zone was signed when its signer was last looked at.
	dnssec      *v1beta1.DNSSECStatus
	dnssecKnown bool

	last lastOutcome
}

// lastOutcome is what the last event said that is neither in the desired zone nor of one object.
type lastOutcome struct {
	known        bool
	problem      status.Verdict
	unprogrammed map[rrset.Key]status.Verdict
	desired      *source.Zone
}

// secondary finds or makes the state of a secondary.
func (s *zoneState) secondary(pod types.NamespacedName) *secondaryState {
	if s.secondaries[pod] == nil {
		s.secondaries[pod] = &secondaryState{}
	}
	return s.secondaries[pod]
}

func (s *zoneState) setConfig(pod types.NamespacedName, config zoneConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs[pod] = config
}

// distrustSecondaries has the content of every secondary read again once it has the serial of the primaries.
func (s *zoneState) distrustSecondaries() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.verified)
}

func (s *zoneState) isVerified(pod types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.verified[pod]
	return ok
}

func (s *zoneState) setVerified(pod types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verified[pod] = struct{}{}
}

func (s *zoneState) isDemoted(pod types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.demoted[pod]
	return ok
}

func (s *zoneState) setDemoted(pod types.NamespacedName, demoted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if demoted {
		s.demoted[pod] = struct{}{}
	} else {
		delete(s.demoted, pod)
	}
}

// zoneStates keeps the state of every zone. The zero value is empty.
type zoneStates struct {
	mu     sync.Mutex
	byZone map[membership.ZoneKey]*zoneState
}

// stateOf returns the state of a zone, which is empty for one that is new.
func (s *zoneStates) stateOf(zone *v1beta1.DNSZone) *zoneState {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := membership.KeyOfZone(zone)
	if known := s.byZone[key]; known != nil && known.uid == zone.UID {
		return known
	}
	if s.byZone == nil {
		s.byZone = map[membership.ZoneKey]*zoneState{}
	}
	s.byZone[key] = &zoneState{
		uid: zone.UID, content: content.NewZone(), secondaries: map[types.NamespacedName]*secondaryState{},
		verified: map[types.NamespacedName]struct{}{}, configs: map[types.NamespacedName]zoneConfig{},
		demoted: map[types.NamespacedName]struct{}{},
	}
	return s.byZone[key]
}

func (s *zoneStates) forget(key membership.ZoneKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byZone, key)
}
