package reconcile

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// applyChanges sends what the primary lacks.
func (s *primarySync) applyChanges(ctx context.Context, q *primary) error {
	want := s.target.soa
	if !rrset.SerialLess(q.seen.Serial, want.Serial) {
		// Someone else's change has overtaken the target.
		want.Serial = rrset.NextSerial(q.seen.Serial, want.Serial)
	}
	changes := q.sendable
	q.known.NoteWritten(want.Serial)
	result, err := q.host.Apply(ctx, changes, q.seen.SOA, want)
	if err == nil && len(result.Refused) > 0 && result.SOA == q.seen.SOA && q.known.RefusesAnew(result.Refused, changes) {
		result, err = q.host.Blame(ctx, result, want)
	}
	q.known.Refused(result.Refused, changes, s.now())
	refused, problem := len(result.Refused), ""
	if err != nil {
		problem = err.Error()
	}
	if isTerminal(err) {
		refused = changes.Len()
	}
	log.FromContext(ctx).Info("nsupdate sent", "zone", s.zone.Spec.ZoneName, "server", q.server.Pod, "messages", result.Sent,
		"create", len(changes.Create), "update", len(changes.UpdateNew), "delete", len(changes.Delete),
		"serial", result.SOA.Serial, "refused", refused, "problem", problem)
	if err == nil {
		q.applied, q.written = changes, result.SOA
		q.known.NoteSent(changes.Keys(), result.Refused)
		q.host.Written(q.seen.SOA, result.SOA, changes.Keys())
	}
	return err
}

// createOnPrimary adds the complete zone to the primary. A signed copy comes back as it is, if it can; what else has changed is an update
// then.
func (s *primarySync) createOnPrimary(ctx context.Context, q *primary) error {
	reference := s.target.reference
	if waiting := s.state.content.Desired().NameServers.Waiting; waiting != "" && !hasNameServers(reference) {
		return errors.New(waiting)
	}
	zone := host.Copy{SOA: s.target.soa, Content: s.state.content.Complete(reference)}
	if s.signing.CanRestore(reference) {
		zone = host.Copy{SOA: reference.SOA, Content: dnssec.SignedContent(reference)}
	}
	q.known.NoteWritten(zone.SOA.Serial)
	err := q.host.Create(ctx, zone)
	if errors.Is(err, host.ErrExists) {
		if s.awaitLoaded(ctx, q); q.err != nil || q.seen.Authoritative {
			return cmp.Or(q.err, host.ErrConflict) // The sidecar has restored a zone that the server had lost.
		}
		// It is configured, but its data could not be loaded. If that fails once more, a fresh copy replaces it.
		zone.ReplaceUnloaded = true
		if err = q.host.Create(ctx, zone); errors.Is(err, host.ErrExists) {
			return host.ErrConflict // It has been loaded meanwhile.
		}
	}
	if err == nil {
		q.written = zone.SOA
	}
	return err
}

// hasNameServers reports whether a copy of the zone has name servers, which a zone that is made of it then has.
func hasNameServers(zone *observe.Mirror) bool {
	if zone == nil {
		return false
	}
	_, ok := zone.Get(rrset.Key{Name: zone.Zone, Type: dns.TypeNS})
	return ok
}

// awaitLoaded observes a primary that has the zone since a moment ago until it serves it: a large one takes a moment to load.
func (s *primarySync) awaitLoaded(ctx context.Context, q *primary) {
	isServed := func() bool { return q.seen.Authoritative && s.signing.IsServed(q.seen.Mirror) }
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 7}
	for q.err == nil && !isServed() && backoff.Steps > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
		s.observePrimary(ctx, q)
	}
}
