package zone

import (
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// place tells the writers of status where an object is.
func (w *world) place(o source.Object) syncevent.Placement {
	at := syncevent.Placement{Unplaced: w.members.UnplacedEndpoints(o)}
	for _, r := range w.members.Roles(source.KeyOf(o)) {
		zone := membership.KeyOfZone(r.Zone)
		switch r.Role {
		case membership.Selected:
			at.Taken, at.Held = append(at.Taken, zone), append(at.Held, zone)
		case membership.Contested:
			at.Taken = append(at.Taken, zone)
		case membership.Leaving:
			at.Held = append(at.Held, zone)
		case membership.NoRole, membership.AlsoSelected:
		}
	}
	return at
}
