package syncevent

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
	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

var endpointVersion = v1alpha1.GroupVersion

// endpointNews is a DNSEndpoint with all that is known about it at the moment.
type endpointNews struct {
	object *v1alpha1.DNSEndpoint
	Placement
	facts status.EndpointFacts
	// unheard is true when a zone that takes endpoints has not told anything since the start, or nothing about the
	// object as it is now.
	unheard bool
	// passes are the latest outcomes of the zones that take endpoints and have judged them.
	passes []SyncCompleted
}

// endpoint tells one DNSEndpoint what became of it in all of its zones. A status that was given before the start stays
// until every zone has told.
func (w *Writer) endpoint(ctx context.Context, key source.ObjectKey) error {
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
	n, err := w.gather(ctx, key, o)
	switch {
	case err != nil:
		return err
	case len(n.Taken) == 0 && !n.held():
		return w.releaseEndpoint(ctx, key, n)
	case n.waits():
		return nil
	}
	if err := w.tellEndpoint(ctx, n); err != nil || !n.settled() {
		return err
	}
	var keys []rrset.Key
	for _, e := range n.passes {
		keys = append(keys, source.PublishedKeys(o, e.Desired.Name)...)
	}
	return w.forgetFormerNames(ctx, o, keys, n.passes...)
}

// gather finds out what is known about a DNSEndpoint.
func (w *Writer) gather(ctx context.Context, key source.ObjectKey, o *v1alpha1.DNSEndpoint) (*endpointNews, error) {
	n := &endpointNews{object: o, Placement: w.Place(o), facts: status.EndpointFacts{Generation: o.Generation}}
	w.await(key, o, slices.Concat(n.Taken, n.Held)...)
	for _, zone := range n.Taken {
		e, heard := w.latest(zone)
		facts := endpointZone(zone, e, heard, key, o)
		n.facts.Zones = append(n.facts.Zones, facts)
		if facts.Judged {
			n.passes = append(n.passes, e)
		}
		// A zone that has told that it is wrong as a whole is not waited for, unless there is something to lose.
		n.unheard = n.unheard || (!facts.Judged && facts.Problem.Reason == "")
	}
	for _, i := range n.Unplaced {
		n.facts.Unplaced = append(n.facts.Unplaced, status.EndpointOutcome{Index: i, RRset: rrsetOf(o, i)})
	}
	left, err := w.leftBy(ctx, key, o)
	n.facts.Left = func(z v1alpha1.EndpointZone) bool {
		return left[types.NamespacedName{Namespace: z.Namespace, Name: z.Name}]
	}
	n.Held = slices.DeleteFunc(slices.Clone(n.Held), func(z types.NamespacedName) bool { return left[z] })
	return n, err
}

// endpointZone is what a zone says about the endpoints of an object that it takes.
func endpointZone(zone types.NamespacedName, e SyncCompleted, heard bool, key source.ObjectKey, o *v1alpha1.DNSEndpoint) status.EndpointZoneFacts {
	f := status.EndpointZoneFacts{Namespace: zone.Namespace, Name: zone.Name, ZoneName: zone.String()}
	if !heard {
		return f
	}
	f.ZoneName = e.Zone.Spec.ZoneName
	if e.Desired == nil {
		f.Problem = e.Problem
		return f
	}
	for id, d := range e.Desired.Of(key) {
		if d.Ref.UID != o.UID || d.Ref.Generation != o.Generation {
			return f
		}
		outcome := status.EndpointOutcome{Index: id.Index, RRset: rrsetText(d.Key)}
		if d.Key.Name == "" || d.Key.Type == 0 {
			outcome.RRset = rrsetOf(o, id.Index)
		}
		outcome.Accepted, outcome.Programmed = verdicts(e, d)
		f.Endpoints = append(f.Endpoints, outcome)
	}
	f.Judged, f.Problem = len(f.Endpoints) > 0, e.Problem
	if !f.Judged {
		f.Problem = status.Verdict{}
	}
	f.Stuck = func(text string) bool {
		_, stuck := e.Unprogrammed[parseRRset(text)]
		return stuck
	}
	return f
}

// leftBy are the zones of an object's status, and others, that hold nothing of it any more: they said so, or are gone
// with all their data.
func (w *Writer) leftBy(ctx context.Context, key source.ObjectKey, o *v1alpha1.DNSEndpoint) (map[types.NamespacedName]bool, error) {
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

// held tells whether data of the object may be in any zone.
func (n *endpointNews) held() bool {
	return len(n.Held) > 0 || slices.ContainsFunc(n.object.Status.Zones, func(z v1alpha1.EndpointZone) bool { return !n.facts.Left(z) })
}

// waits tells whether it is too early to judge: the object has been judged before, and a zone has still to say whether
// that is still so. An object that nobody has looked at is told at once that it has been seen.
func (n *endpointNews) waits() bool {
	if meta.FindStatusCondition(n.object.Status.Conditions, status.Accepted) == nil {
		return false
	}
	judged := n.object.Status.ObservedGeneration == n.object.Generation && len(n.passes) < len(n.Taken)
	return n.unheard || judged
}

// settled tells whether all zones that the object has or had anything to do with have dealt with it as it is now.
func (n *endpointNews) settled() bool {
	for _, zone := range n.Held {
		if !slices.Contains(n.Taken, zone) {
			return false
		}
	}
	return len(n.passes) == len(n.Taken) && !slices.ContainsFunc(n.passes, func(e SyncCompleted) bool {
		return !e.settled(n.object.Generation, n.object)
	})
}

// tellEndpoint writes the status of a DNSEndpoint, when it differs from what that already says. One that is being deleted
// is only told which zones hold it still.
func (w *Writer) tellEndpoint(ctx context.Context, n *endpointNews) error {
	prev := n.object.Status
	next := status.Endpoint(prev, n.facts, w.Now())
	if !n.object.DeletionTimestamp.IsZero() {
		next.Conditions, next.ObservedGeneration = prev.Conditions, prev.ObservedGeneration
	}
	if equality.Semantic.DeepEqual(next, prev) {
		return nil
	}
	if err := w.applied(ctx, source.EndpointKind, n.object, &next); err != nil {
		return err
	}
	if !slices.ContainsFunc(n.facts.Zones, func(z status.EndpointZoneFacts) bool { return !z.Problem.Holds() }) {
		w.announce(n.object, prev.Conditions, next.Conditions)
	}
	return nil
}

// releaseEndpoint takes our marks off a DNSEndpoint that is in no zone. That the zones have let go of it is known until all
// of this is written: they say it once.
func (w *Writer) releaseEndpoint(ctx context.Context, key source.ObjectKey, n *endpointNews) error {
	free, err := apply.Metadata(ctx, w.Client, n.object, unmark)
	if err != nil {
		return err
	}
	if n.object.DeletionTimestamp.IsZero() {
		n.object = free.(*v1alpha1.DNSEndpoint)
		if err := w.tellEndpoint(ctx, n); err != nil {
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

// rrsetText is how a status writes an RRset: "www.example.com./A".
func rrsetText(k rrset.Key) string { return k.Name + "/" + dns.Type(k.Type).String() }

func parseRRset(text string) rrset.Key {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return rrset.Key{}
	}
	return rrset.Key{Name: text[:i], Type: dns.StringToType[text[i+1:]]}
}

// rrsetOf is an endpoint as its object writes it, for those that are no RRset.
func rrsetOf(o *v1alpha1.DNSEndpoint, i int) string {
	if i >= len(o.Spec.Endpoints) || o.Spec.Endpoints[i] == nil {
		return ""
	}
	return o.Spec.Endpoints[i].DNSName + "/" + o.Spec.Endpoints[i].RecordType
}
