package statuswriter

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// CorrectStatus has the status of a zone, a record or a DNSEndpoint written again, if somebody else has overwritten it. An informer
// calls it, after Place knows the object as it is now.
func (w *Writer) CorrectStatus(before, after client.Object) {
	if !w.corrections.IsOverwritten(before, after) {
		return
	}
	key, n := source.ObjectKey{Kind: source.ZoneKind, Namespace: after.GetNamespace(), Name: after.GetName()}, statusTask{}
	switch o := after.(type) {
	case *v1beta1.DNSZone:
		n.zone = client.ObjectKeyFromObject(o)
	case source.Object:
		if w.Place == nil {
			return
		}
		key, n = source.KeyOf(o), w.Place(o).statusTask()
	default:
		return
	}
	w.queue.addAfter(w.corrections.Delay(after.GetUID()), n, key)
}

// statusTask is the task that writes the status of an object which is there.
func (p Placement) statusTask() statusTask {
	for _, zones := range [][]types.NamespacedName{p.Taken, p.Held} {
		if len(zones) > 0 {
			return statusTask{zone: zones[0]}
		}
	}
	return statusTask{released: true} // As for one that never was in any zone.
}
