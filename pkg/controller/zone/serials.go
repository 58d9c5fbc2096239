package zone

import (
	"sync"
)

// serials remembers the serial that every zone should have on its servers: the one that it was seen with, or is being
// given. Any other is news.
type serials struct {
	mu     sync.Mutex
	byZone map[zoneKey]uint32
}

func (s *serials) expect(zone zoneKey, serial uint32) {
	if serial == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byZone == nil {
		s.byZone = map[zoneKey]uint32{}
	}
	s.byZone[zone] = serial
}

// expected tells whether a zone should have the serial. A zone that no pass has seen yet has its first one before it.
func (s *serials) expected(zone zoneKey, serial uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	want, known := s.byZone[zone]
	return !known || want == serial
}

func (s *serials) drop(zone zoneKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byZone, zone)
}
