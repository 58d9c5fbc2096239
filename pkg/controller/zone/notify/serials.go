package notify

import (
	"sync"

	"github.com/lockstep-dns/lockstep/pkg/membership"
)

// Serials remembers the serial that every zone should have on its servers: the one that it was seen with, or is being
// given. The zero value is empty; it is safe for concurrent use.
type Serials struct{ byZone sync.Map }

// Expect sets the serial that a zone should have; 0 changes nothing.
func (s *Serials) Expect(zone membership.ZoneKey, serial uint32) {
	if serial != 0 {
		s.byZone.Store(zone, serial)
	}
}

// IsExpected reports whether a zone should have the serial. A zone without a pass so far expects any: its first pass is to
// come.
func (s *Serials) IsExpected(zone membership.ZoneKey, serial uint32) bool {
	want, known := s.byZone.Load(zone)
	return !known || want == serial
}

// Forget drops a zone.
func (s *Serials) Forget(zone membership.ZoneKey) { s.byZone.Delete(zone) }
