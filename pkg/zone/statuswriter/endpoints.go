package statuswriter

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// endpointOutcome is a DNSEndpoint with all that is known about it at the moment.
type endpointOutcome struct {
	object *v1alpha1.DNSEndpoint
	Placement
	facts status.EndpointFacts
	// incomplete is true when a zone that takes endpoints has had no pass since the start, or none over the object as it is
	// now.
	incomplete bool
	// passes are the latest outcomes of the zones that take endpoints and have dealt with them.
	passes []SyncCompleted
}

// writeEndpoint writes the status of one DNSEndpoint, which is computed from the outcomes of all of its zones. A status
// from before the start stays until every zone has had a pass.
func (w *Writer) writeEndpoint(ctx context.Context, key source.ObjectKey) error {
	if w.Place == nil {
		return nil
	}
	o := &v1alpha1.DNSEndpoint{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o); err != nil {
		if client.IgnoreNotFound(err) == nil {
			w.forgetReleased(key)
		}
		return client.IgnoreNotFound(err)
	}
	n, err := w.gatherEndpoint(ctx, key, o)
	switch {
	case err != nil:
		return err
	case len(n.Taken) == 0 && !n.isHeld():
		return w.releaseEndpoint(ctx, key, n)
	case n.mustWait():
		return nil
	}
	if err := w.writeEndpointStatus(ctx, n); err != nil || !n.isSettled() {
		return err
	}
	var keys []rrset.Key
	for _, e := range n.passes {
		keys = append(keys, source.PublishedKeys(o, e.Desired.Name)...)
	}
	return w.removeFormerNames(ctx, o, keys, n.passes...)
}

// gatherEndpoint collects what is known about a DNSEndpoint.
func (w *Writer) gatherEndpoint(ctx context.Context, key source.ObjectKey, o *v1alpha1.DNSEndpoint) (*endpointOutcome, error) {
	n := &endpointOutcome{object: o, Placement: w.Place(o), facts: status.EndpointFacts{Generation: o.Generation}}
	w.watchOutcomes(key, o, slices.Concat(n.Taken, n.Held)...)
	for _, zone := range n.Taken {
		e, known := w.latestOutcome(zone)
		facts := endpointZoneFacts(zone, e, known, key, o)
		n.facts.Zones = append(n.facts.Zones, facts)
		if facts.Judged {
			n.passes = append(n.passes, e)
		}
		// A zone that is wrong as a whole is not waited for, unless there is something to lose.
		n.incomplete = n.incomplete || (!facts.Judged && facts.Programmed.Reason == "")
	}
	for _, i := range n.Unplaced {
		n.facts.Unplaced = append(n.facts.Unplaced, status.EndpointOutcome{Index: i, RRset: endpointText(o, i)})
	}
	left, err := w.zonesLeft(ctx, key, o)
	n.facts.Left = func(z v1alpha1.EndpointZone) bool {
		return left[types.NamespacedName{Namespace: z.Namespace, Name: z.Name}]
	}
	n.Held = slices.DeleteFunc(slices.Clone(n.Held), func(z types.NamespacedName) bool { return left[z] })
	n.facts.Leaving = w.leavingZones(n)
	return n, err
}

// leavingZones are the zones that may hold data of an object and take nothing of it, with all that it may be.
func (w *Writer) leavingZones(n *endpointOutcome) (leaving []v1alpha1.EndpointZone) {
	for _, zone := range n.Held {
		e, known := w.latestOutcome(zone)
		if !known || e.Desired == nil || slices.Contains(n.Taken, zone) {
			continue
		}
		entry := v1alpha1.EndpointZone{Namespace: zone.Namespace, Name: zone.Name, ZoneName: e.Zone.Spec.ZoneName}
		for _, key := range source.PublishedKeys(n.object, e.Desired.Name) {
			entry.RRsets = append(entry.RRsets, rrsetText(key))
		}
		leaving = append(leaving, entry)
	}
	return leaving
}

// endpointZoneFacts is the outcome of a zone for the endpoints of an object that it takes.
func endpointZoneFacts(zone types.NamespacedName, e SyncCompleted, known bool, key source.ObjectKey, o *v1alpha1.DNSEndpoint) status.EndpointZoneFacts {
	f := status.EndpointZoneFacts{Namespace: zone.Namespace, Name: zone.Name, ZoneName: zone.String()}
	if !known {
		return f
	}
	f.ZoneName = e.Zone.Spec.ZoneName
	if e.Desired == nil {
		f.Programmed = e.Programmed
		return f
	}
	for id, d := range e.Desired.Of(key) {
		if d.Ref.UID != o.UID || d.Ref.Generation != o.Generation {
			return f
		}
		outcome := status.EndpointOutcome{Index: id.Index, RRset: rrsetText(d.Key)}
		if d.Key.Name == "" || d.Key.Type == 0 {
			outcome.RRset = endpointText(o, id.Index)
		}
		outcome.Accepted, outcome.Programmed = declarationVerdicts(e, d)
		f.Endpoints = append(f.Endpoints, outcome)
	}
	f.Judged, f.Programmed = len(f.Endpoints) > 0, e.Programmed
	if !f.Judged {
		f.Programmed = status.Verdict{}
	}
	f.Stuck = func(text string) bool {
		_, stuck := e.Unprogrammed[parseRRset(text)]
		return stuck
	}
	return f
}

// zonesLeft are the zones, of an object's status and others, that hold nothing of it any more: they released it, or are gone with all
// their data.
func (w *Writer) zonesLeft(ctx context.Context, key source.ObjectKey, o *v1alpha1.DNSEndpoint) (map[types.NamespacedName]bool, error) {
	left := map[types.NamespacedName]bool{}
	w.mu.Lock()
	for zone := range maps.Keys(w.released[key]) {
		left[zone] = true
	}
	w.mu.Unlock()
	for _, z := range o.Status.Zones {
		name := types.NamespacedName{Namespace: z.Namespace, Name: z.Name}
		if left[name] {
			continue
		}
		err := w.Client.Get(ctx, name, &v1beta1.DNSZone{})
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		left[name] = err != nil
	}
	return left, nil
}

// isHeld reports whether data of the object may be in any zone.
func (n *endpointOutcome) isHeld() bool {
	return len(n.Held) > 0 || slices.ContainsFunc(n.object.Status.Zones, func(z v1alpha1.EndpointZone) bool { return !n.facts.Left(z) })
}

// mustWait reports whether it is too early for a status: the object has one, and a zone has still to confirm it. An object without a
// status gets one at once, which shows that it has been seen.
func (n *endpointOutcome) mustWait() bool {
	if meta.FindStatusCondition(n.object.Status.Conditions, status.Accepted) == nil {
		return false
	}
	judged := n.object.Status.ObservedGeneration == n.object.Generation && len(n.passes) < len(n.Taken)
	return n.incomplete || judged
}

// isSettled reports whether all zones that the object has or had anything to do with have dealt with it as it is now.
func (n *endpointOutcome) isSettled() bool {
	isLeft := func(zone types.NamespacedName) bool { return !slices.Contains(n.Taken, zone) }
	isWaiting := func(e SyncCompleted) bool { return !e.hasSettled(n.object.Generation, n.object) }
	return !slices.ContainsFunc(n.Held, isLeft) && len(n.passes) == len(n.Taken) && !slices.ContainsFunc(n.passes, isWaiting)
}

// writeEndpointStatus writes the status of a DNSEndpoint, if it differs. For one that is being deleted only the zones that
// still hold it change.
func (w *Writer) writeEndpointStatus(ctx context.Context, n *endpointOutcome) error {
	prev := n.object.Status
	next := status.Endpoint(prev, n.facts, w.Now())
	if !n.object.DeletionTimestamp.IsZero() {
		next.Conditions, next.ObservedGeneration = prev.Conditions, prev.ObservedGeneration
	}
	if equality.Semantic.DeepEqual(next, prev) {
		return nil
	}
	if err := w.writeStatus(ctx, source.EndpointKind, n.object, &next); err != nil {
		return err
	}
	if !slices.ContainsFunc(n.facts.Zones, func(z status.EndpointZoneFacts) bool { return !z.Programmed.Holds() }) {
		w.recordTransition(n.object, prev.Conditions, next.Conditions)
	}
	return nil
}

// releaseEndpoint removes our marks from a DNSEndpoint that is in no zone. Its releases stay known until all of this is
// written, because each zone reports one only once.
func (w *Writer) releaseEndpoint(ctx context.Context, key source.ObjectKey, n *endpointOutcome) error {
	free, err := apply.Metadata(ctx, w.Client, n.object, noMarks())
	if err != nil {
		return err
	}
	if n.object.DeletionTimestamp.IsZero() {
		n.object = free.(*v1alpha1.DNSEndpoint)
		if err := w.writeEndpointStatus(ctx, n); err != nil {
			return err
		}
	}
	w.forgetReleased(key)
	return nil
}

func (w *Writer) forgetReleased(key source.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.released, key)
}

// rrsetText writes an RRset as a status does: "www.example.com./A".
func rrsetText(k rrset.Key) string { return k.Name + "/" + dns.Type(k.Type).String() }

func parseRRset(text string) rrset.Key {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return rrset.Key{}
	}
	return rrset.Key{Name: text[:i], Type: dns.StringToType[text[i+1:]]}
}

// endpointText writes an endpoint as its object does, for those that are no RRset.
func endpointText(o *v1alpha1.DNSEndpoint, i int) string {
	if i >= len(o.Spec.Endpoints) || o.Spec.Endpoints[i] == nil {
		return ""
	}
	return o.Spec.Endpoints[i].DNSName + "/" + o.Spec.Endpoints[i].RecordType
}
