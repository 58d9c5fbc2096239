package reconcile

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// change is what a pass is about to do to the zone on one primary. The zero value is nothing.
type change struct {
	// do makes the change.
	do step
	// err is why nothing can be done.
	err error
	// zone is what a primary without the zone gets.
	zone host.Copy
	// changes are what a primary with the zone lacks, and soa is the SOA with which they leave it.
	changes plan.Changes
	soa     rrset.SOA
}

// step is what happens to a zone on a primary.
type step int

const (
	// nothing is to be done.
	nothing step = iota
	// create gives a primary the zone that it does not have.
	create
	// restore gives a signer the zone back as it was signed. What has changed since is caught up with then.
	restore
	// catchUp sends a primary what it lacks: what is declared anew, and what somebody else has taken away or changed.
	catchUp
)

// planChanges returns what is to be done to each primary, by its ID.
func (p zonePass) planChanges(primaries []primary, t target) map[types.NamespacedName]change {
	changes := map[types.NamespacedName]change{}
	for _, q := range primaries {
		if q.err == nil {
			changes[q.at.ID] = p.planChange(q, t)
		}
	}
	return changes
}

func (p zonePass) planChange(q primary, t target) change {
	if q.seen.Mirror != nil {
		if !q.sendable.HasChanges() && (!q.isOnLine() || q.seen.SOA == t.soa) {
			return change{}
		}
		soa := t.soa
		if !rrset.SerialLess(q.seen.Serial, soa.Serial) {
			soa.Serial = rrset.NextSerial(q.seen.Serial, soa.Serial) // Someone else's change has overtaken the target.
		}
		return change{do: catchUp, changes: q.sendable, soa: soa}
	}
	if err := q.host.Missing(q.seen); err != nil || q.written != (rrset.SOA{}) {
		return change{err: err} // Nobody can create it there, or it is loading what it has got.
	}
	if waiting := p.state.content.Desired().NameServers.Waiting; waiting != "" && !hasNameServers(t.reference) {
		return change{err: errors.New(waiting)}
	}
	if p.signing.CanRestore(t.reference) {
		return change{do: restore, zone: host.Copy{SOA: t.reference.SOA, Content: dnssec.SignedContent(t.reference)}}
	}
	return change{do: create, zone: host.Copy{SOA: t.soa, Content: p.state.content.Complete(t.reference)}}
}

// hasNameServers reports whether a copy of the zone has name servers, which a zone that is made of it then has.
func hasNameServers(zone *observe.Mirror) bool {
	if zone == nil {
		return false
	}
	_, ok := zone.Get(rrset.Key{Name: zone.Zone, Type: dns.TypeNS})
	return ok
}

// apply makes a change on a primary, and reads back what it serves then.
func (p zonePass) apply(ctx context.Context, q primary, c change, t target) primary {
	q.sent, q.unsettled, q.overtaken = nil, false, false
	var err error
	switch c.do {
	case nothing:
		return q.withError(c.err)
	case create, restore:
		q, err = p.sendZone(ctx, q, c.zone)
	case catchUp:
		q, err = p.sendUpdate(ctx, q, c)
	}
	if q.err = nil; errors.Is(err, host.ErrConflict) || errors.Is(err, host.ErrUnknown) {
		q.sent = err
	} else if q = q.withError(err); q.err != nil {
		return q
	}
	if q = p.readBack(ctx, q); c.do != catchUp {
		q = p.awaitLoaded(ctx, q)
	}
	if q.err == nil && q.seen.Mirror != nil {
		p.noteForeign(q)
		q = p.noteOvertaking(p.noteOverwrittenAgain(p.compare(q, t)))
	}
	// If somebody else was faster, read all primaries again: our view of the others is equally stale and would resurrect deleted foreign
	// records.
	q.unsettled = q.sent != nil || q.overtaken || c.do == restore || c.do == catchUp && q.lacksMore()
	return q
}

// sendZone adds the complete zone to the primary.
func (p zonePass) sendZone(ctx context.Context, q primary, zone host.Copy) (primary, error) {
	q.known.NoteWritten(zone.SOA.Serial)
	err := q.host.Create(ctx, zone)
	if errors.Is(err, host.ErrExists) {
		if q = p.awaitLoaded(ctx, q); q.err != nil || q.seen.Authoritative {
			return q, cmp.Or(q.err, host.ErrConflict) // The sidecar has restored a zone that the server had lost.
		}
		// It is configured, but its data could not be loaded. If that fails once more, a fresh copy replaces it.
		zone.ReplaceUnloaded = true
		if err = q.host.Create(ctx, zone); errors.Is(err, host.ErrExists) {
			return q, host.ErrConflict // It has been loaded meanwhile.
		}
	}
	if err == nil {
		q.written = zone.SOA
	}
	return q, err
}

// sendUpdate sends what the primary lacks.
func (p zonePass) sendUpdate(ctx context.Context, q primary, c change) (primary, error) {
	changes := c.changes
	q.known.NoteWritten(c.soa.Serial)
	result, err := q.host.Apply(ctx, changes, q.seen.SOA, c.soa)
	if err == nil && len(result.Refused) > 0 && result.SOA == q.seen.SOA && q.known.RefusesAnew(result.Refused, changes) {
		result, err = q.host.Blame(ctx, result, c.soa)
	}
	q.known.Refused(result.Refused, changes, p.now())
	refused, problem := len(result.Refused), ""
	if err != nil {
		problem = err.Error()
	}
	if isTerminal(err) {
		refused = changes.Len()
	}
	log.FromContext(ctx).Info("nsupdate sent", "zone", p.zone.Spec.ZoneName, "server", q.at.Pod, "messages", result.Sent,
		"create", len(changes.Create), "update", len(changes.UpdateNew), "delete", len(changes.Delete),
		"serial", result.SOA.Serial, "refused", refused, "problem", problem)
	if err == nil {
		q.applied, q.written = changes, result.SOA
		q.known.NoteSent(changes.Keys(), result.Refused)
		q.host.Written(q.seen.SOA, result.SOA, changes.Keys())
	}
	return q, err
}

// readBack reads a primary's zone after an update. A serial that has not moved shows nothing where it is not ours to set.
func (p zonePass) readBack(ctx context.Context, q primary) primary {
	before := q.seen.SOA
	if q = p.observePrimary(ctx, q); !q.isOnLine() && q.err == nil && q.seen.SOA == before {
		q.host.Forget()
		q = p.observePrimary(ctx, q)
	}
	return q
}

// awaitLoaded observes a primary that has the zone since a moment ago until it serves it: a large one takes a moment to load.
func (p zonePass) awaitLoaded(ctx context.Context, q primary) primary {
	isServed := func() bool { return q.seen.Authoritative && p.signing.IsServed(q.seen.Mirror) }
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 7}
	for q.err == nil && !isServed() && backoff.Steps > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
		q = p.observePrimary(ctx, q)
	}
	return q
}

// lacksMore reports whether a primary lacks what the update that it took did not have: another primary was seen with it meanwhile.
func (q primary) lacksMore() bool {
	sent := map[rrset.Key]bool{}
	for key := range q.applied.Keys() {
		sent[key] = true
	}
	for key := range q.sendable.Keys() {
		if !sent[key] {
			return true
		}
	}
	return false
}
