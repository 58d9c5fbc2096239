package primary

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
func (p Pass) planChanges(primaries []State, t target) map[types.NamespacedName]change {
	changes := map[types.NamespacedName]change{}
	for _, q := range primaries {
		if q.Err == nil {
			changes[q.At.ID] = p.planChange(q, t)
		}
	}
	return changes
}

func (p Pass) planChange(q State, t target) change {
	if q.Seen.Mirror != nil {
		if !q.sendable.HasChanges() && (!q.IsOnLine() || q.Seen.SOA == t.soa) {
			return change{}
		}
		soa := t.soa
		if !rrset.SerialLess(q.Seen.Serial, soa.Serial) {
			soa.Serial = rrset.NextSerial(q.Seen.Serial, soa.Serial) // Someone else's change has overtaken the target.
		}
		return change{do: catchUp, changes: q.sendable, soa: soa}
	}
	if err := q.Host.Missing(q.Seen); err != nil || q.written != (rrset.SOA{}) {
		return change{err: err} // Nobody can create it there, or it is loading what it has got.
	}
	if waiting := p.Content.Desired().NameServers.Waiting; waiting != "" && !hasNameServers(t.reference) {
		return change{err: errors.New(waiting)}
	}
	if p.Zone.Signing.CanRestore(t.reference) {
		return change{do: restore, zone: host.Copy{SOA: t.reference.SOA, Content: dnssec.SignedContent(t.reference)}}
	}
	return change{do: create, zone: host.Copy{SOA: t.soa, Content: p.Content.Complete(t.reference)}}
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
func (p Pass) apply(ctx context.Context, q State, c change, t target) State {
	q.sent, q.unsettled, q.Overtaken = nil, false, false
	var err error
	switch c.do {
	case nothing:
		return q.withError(c.err)
	case create, restore:
		q, err = p.sendZone(ctx, q, c.zone)
	case catchUp:
		q, err = p.sendUpdate(ctx, q, c)
	}
	if q.Err = nil; errors.Is(err, host.ErrConflict) || errors.Is(err, host.ErrUnknown) {
		q.sent = err
	} else if q = q.withError(err); q.Err != nil {
		return q
	}
	if q = p.readBack(ctx, q); c.do != catchUp {
		q = p.awaitLoaded(ctx, q)
	}
	if q.Err == nil && q.Seen.Mirror != nil {
		p.noteForeign(q)
		q = p.noteOvertaking(p.noteOverwrittenAgain(p.compare(q, t)))
	}
	// If somebody else was faster, read all primaries again: our view of the others is equally stale and would resurrect deleted foreign
	// records.
	q.unsettled = q.sent != nil || q.Overtaken || c.do == restore || c.do == catchUp && q.lacksMore()
	return q
}

// sendZone adds the complete zone to the primary.
func (p Pass) sendZone(ctx context.Context, q State, zone host.Copy) (State, error) {
	q.Known.NoteWritten(zone.SOA.Serial)
	err := q.Host.Create(ctx, zone)
	if errors.Is(err, host.ErrExists) {
		if q = p.awaitLoaded(ctx, q); q.Err != nil || q.Seen.Authoritative {
			return q, cmp.Or(q.Err, host.ErrConflict) // The sidecar has restored a zone that the server had lost.
		}
		// It is configured, but its data could not be loaded. If that fails once more, a fresh copy replaces it.
		zone.ReplaceUnloaded = true
		if err = q.Host.Create(ctx, zone); errors.Is(err, host.ErrExists) {
			return q, host.ErrConflict // It has been loaded meanwhile.
		}
	}
	if err == nil {
		q.written = zone.SOA
	}
	return q, err
}

// sendUpdate sends what the primary lacks.
func (p Pass) sendUpdate(ctx context.Context, q State, c change) (State, error) {
	changes := c.changes
	q.Known.NoteWritten(c.soa.Serial)
	result, err := q.Host.Apply(ctx, changes, q.Seen.SOA, c.soa)
	if err == nil && len(result.Refused) > 0 && result.SOA == q.Seen.SOA && q.Known.RefusesAnew(result.Refused, changes) {
		result, err = q.Host.Blame(ctx, result, c.soa)
	}
	q.Known.Refused(result.Refused, changes, p.Zone.Now())
	refused, problem := len(result.Refused), ""
	if err != nil {
		problem = err.Error()
	}
	if host.IsTerminal(err) {
		refused = changes.Len()
	}
	log.FromContext(ctx).Info("nsupdate sent", "zone", p.Zone.Object.Spec.ZoneName, "server", q.At.Pod, "messages", result.Sent,
		"create", len(changes.Create), "update", len(changes.UpdateNew), "delete", len(changes.Delete),
		"serial", result.SOA.Serial, "refused", refused, "problem", problem)
	if errors.Is(err, host.ErrUnknown) {
		q.Known.NoteLost(result.SOA, changes.Keys(), p.Zone.Now())
	}
	if err == nil {
		q.Applied, q.written = changes, result.SOA
		q.Known.NoteSent(changes.Keys(), result.Refused)
		q.Host.Written(q.Seen.SOA, result.SOA, changes.Keys())
	}
	return q, err
}

// readBack reads a primary's zone after an update. A serial that has not moved shows nothing where it is not ours to set.
func (p Pass) readBack(ctx context.Context, q State) State {
	before := q.Seen.SOA
	if q = p.observePrimary(ctx, q); !q.IsOnLine() && q.Err == nil && q.Seen.SOA == before {
		q.Host.Forget()
		q = p.observePrimary(ctx, q)
	}
	return q
}

// awaitLoaded observes a primary that has the zone since a moment ago until it serves it: a large one takes a moment to load.
func (p Pass) awaitLoaded(ctx context.Context, q State) State {
	isServed := func() bool { return q.Seen.Authoritative && p.Zone.Signing.IsServed(q.Seen.Mirror) }
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 7}
	for q.Err == nil && !isServed() && backoff.Steps > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
		q = p.observePrimary(ctx, q)
	}
	return q
}

// lacksMore reports whether a primary lacks what the update that it took did not have: another primary was seen with it meanwhile.
func (q State) lacksMore() bool {
	sent := map[rrset.Key]bool{}
	for key := range q.Applied.Keys() {
		sent[key] = true
	}
	for key := range q.sendable.Keys() {
		if !sent[key] {
			return true
		}
	}
	return false
}
