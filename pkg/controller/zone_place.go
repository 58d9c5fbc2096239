package controller

import (
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// place tells the writers of status where an object is.
func (w *world) place(o source.Object) syncevent.Placement {
	w.mu.Lock()
	defer w.mu.Unlock()
	var at syncevent.Placement
	for zone, role := range w.members.Roles(source.KeyOf(o)) {
		switch role {
		case source.Selected:
			at.Taken, at.Held = append(at.Taken, keyOfZone(zone)), append(at.Held, keyOfZone(zone))
		case source.Contested:
			at.Taken = append(at.Taken, keyOfZone(zone))
		case source.Leaving:
			at.Held = append(at.Held, keyOfZone(zone))
		case source.NoRole, source.AlsoSelected:
		}
	}
	if e, ok := o.(*v1alpha1.DNSEndpoint); ok {
		for i, endpoint := range e.Spec.Endpoints {
			if endpoint != nil && w.members.EndpointZone(e.Namespace, endpoint.DNSName) == nil {
				at.Unplaced = append(at.Unplaced, i)
			}
		}
	}
	return at
}
