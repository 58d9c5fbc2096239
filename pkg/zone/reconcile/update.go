package reconcile

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
)

// applyChanges sends what the primary lacks as RFC 2136 updates, each on condition that the SOA is the one that was seen or, where
// others write as well, that each RRset is.
func (s *primarySync) applyChanges(ctx context.Context, q *primary) error {
	want := s.target.soa
	if !rrset.SerialLess(q.seen.Serial, want.Serial) {
		// Someone else's change has overtaken the target.
		want.Serial = rrset.NextSerial(q.seen.Serial, want.Serial)
	}
	changes := q.sendable
	q.known.NoteWritten(want.Serial)
	to := rfc2136.Target{Server: q.server.Addr, Zone: s.dnsName(), Key: q.updateKey, Shared: q.server.Shared}
	result, err := s.updates.Apply(ctx, to, changes, q.seen.SOA, want)
	if err == nil && !to.Shared && result.SOA == q.seen.SOA && failsToWrite(result.Refused) && q.known.RefusesAnew(result.Refused, changes) {
		result, err = s.blame(ctx, to, result, want)
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
		s.state.contentByQuery(podOf(q.server)).Written(q.seen.SOA, result.SOA, changes.Keys())
	}
	return err
}

// failsToWrite reports whether a server has failed (SERVFAIL) at all RRsets that it refused.
func failsToWrite(refused map[rrset.Key]error) bool {
	for _, err := range refused {
		var e *wire.Error
		if !errors.As(err, &e) || e.Rcode != dns.RcodeServerFailure {
			return false
		}
	}
	return len(refused) > 0
}

// blame finds out whether it is the RRset to which a server failed alone, or the server, which can write nothing at present: an
// update of the SOA succeeds or fails. It costs one serial for each RRset that a server does not take.
func (s *primarySync) blame(ctx context.Context, to rfc2136.Target, failed rfc2136.Result, want rrset.SOA) (rfc2136.Result, error) {
	probe, err := s.updates.Apply(ctx, to, plan.Changes{}, failed.SOA, want)
	probe.Sent += failed.Sent
	if err == nil {
		probe.Refused = failed.Refused
	}
	return probe, err
}

// createOnPrimary adds the complete zone to the primary in one piece, so that it never answers from an empty one. A signed
// copy comes back as it is, if it can; what else has changed is an update then.
func (s *primarySync) createOnPrimary(ctx context.Context, q *primary) error {
	reference := s.target.reference
	soa, content := s.target.soa, s.state.content.Complete(reference)
	if s.signing.CanRestore(reference) {
		soa, content = reference.SOA, dnssec.SignedContent(reference)
	}
	config := s.configFor(observe.Primary)
	request := bindcar.CreateZone{
		ZoneName: source.DNSName(s.zone), ZoneType: bindcar.Primary, UpdateKeyName: q.updateKey.Name, Owner: s.key().String(),
		ZoneConfig: bindcar.ZoneConfig{
			TTL: soa.TTL, SOA: sidecarSOA(soa), Records: sidecarRecords(content), AlsoNotify: config.servers, AllowTransfer: config.transfer,
			DNSSECPolicy: s.signing.Policy, KeySecret: s.signing.KeySecretName(s.zone),
		},
	}
	sidecar := inventory.SidecarOf(q.server)
	q.known.NoteWritten(soa.Serial)
	err := s.sidecar.CreateZone(ctx, sidecar, request)
	if bindcar.IsExists(err) {
		if s.awaitLoaded(ctx, q); q.err != nil || q.seen.Authoritative {
			return cmp.Or(q.err, host.ErrConflict) // The sidecar has restored a zone that the server had lost.
		}
		// It is configured, but its data could not be loaded. If that fails once more, a fresh copy replaces it.
		request.ReplaceUnloaded = true
		if err = s.sidecar.CreateZone(ctx, sidecar, request); bindcar.IsExists(err) {
			return host.ErrConflict // It has been loaded meanwhile.
		}
	}
	log.FromContext(ctx).Info("zone created on a primary", "zone", s.zone.Spec.ZoneName, "server", q.server.Pod,
		"records", len(request.ZoneConfig.Records), "serial", soa.Serial, "failed", err != nil)
	if err == nil {
		q.written = soa
		s.recordCreated(q.server, config)
	}
	return err
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

func sidecarSOA(soa rrset.SOA) *bindcar.SOA {
	return &bindcar.SOA{PrimaryNS: soa.MName, AdminEmail: soa.RName, Serial: soa.Serial,
		Refresh: soa.Refresh, Retry: soa.Retry, Expire: soa.Expire, NegativeTTL: soa.Minimum}
}

func sidecarRecords(content iter.Seq[rrset.RRset]) []bindcar.Record {
	var records []bindcar.Record
	for s := range content {
		ttl := s.TTL
		for _, rdata := range s.Rdata {
			records = append(records, bindcar.Record{Name: s.Name, Type: dns.TypeToString[s.Type], Value: rdata, TTL: &ttl})
		}
	}
	return records
}
