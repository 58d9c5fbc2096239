package notify

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// Serials remembers the serial that every zone should have on its servers: the one that it was seen with, or is being
// given. The zero value is empty; it is safe for concurrent use.
type Serials struct {
	mu     sync.Mutex
	byZone map[membership.ZoneKey]expectation
	// reloaded are, by zone, the servers that have loaded it again on the serial that it had.
	reloaded map[membership.ZoneKey]sets.Set[types.NamespacedName]
}

type expectation struct {
	serial uint32
	// awaited are the servers that do not have it yet.
	awaited sets.Set[types.NamespacedName]
}

// Expect sets the serial that a zone should have.
func (s *Serials) Expect(zone membership.ZoneKey, serial uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byZone == nil {
		s.byZone = map[membership.ZoneKey]expectation{}
	}
	if e, known := s.byZone[zone]; !known || e.serial != serial {
		s.byZone[zone] = expectation{serial: serial}
	}
}

// Await sets which servers, by their pods, do not have a zone's expected serial yet.
func (s *Serials) Await(zone membership.ZoneKey, servers []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, known := s.byZone[zone]; known {
		e.awaited = sets.New(servers...)
		s.byZone[zone] = e
	}
}

// IsNews reports whether it is a reason for a pass that a server has a zone's serial: another one was expected, or the
// server was awaited. So it is that a serial is unknown (nil): the zone may be gone. A zone without a pass so far expects any: its first
// pass is to come.
func (s *Serials) IsNews(zone membership.ZoneKey, server types.NamespacedName, serial *uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.byZone[zone]
	if !known || serial == nil || e.serial != *serial {
		return known
	}
	awaited := e.awaited.Has(server)
	e.awaited.Delete(server)
	return awaited
}

// NoteReloaded remembers that a server has loaded a zone again on the serial that it had: it may hold anything now.
func (s *Serials) NoteReloaded(zone membership.ZoneKey, server types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reloaded == nil {
		s.reloaded = map[membership.ZoneKey]sets.Set[types.NamespacedName]{}
	}
	if s.reloaded[zone] == nil {
		s.reloaded[zone] = sets.New[types.NamespacedName]()
	}
	s.reloaded[zone].Insert(server)
}

// TakeReloaded returns the servers that have loaded a zone again since the last call.
func (s *Serials) TakeReloaded(zone membership.ZoneKey) sets.Set[types.NamespacedName] {
	s.mu.Lock()
	defer s.mu.Unlock()
	servers := s.reloaded[zone]
	delete(s.reloaded, zone)
	return servers
}

// Forget drops a zone.
func (s *Serials) Forget(zone membership.ZoneKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byZone, zone)
	delete(s.reloaded, zone)
}
