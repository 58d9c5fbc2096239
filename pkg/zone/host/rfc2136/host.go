package rfc2136

import (
	"context"
	"errors"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Updater applies changes to a zone that has the SOA have, and leaves it with the SOA want.
type Updater interface {
	Apply(ctx context.Context, target Target, changes plan.Changes, have, want rrset.SOA) (Result, error)
}

// Exclusive writes to a zone that nobody else changes on purpose: each update is on condition that the SOA is the one that was seen.
type Exclusive struct {
	To      *host.Access
	Updates Updater
}

// Apply implements host.Primary.
func (e Exclusive) Apply(ctx context.Context, changes plan.Changes, have, want rrset.SOA) (host.Result, error) {
	return e.Updates.Apply(ctx, Target{Server: e.To.Server.Addr, Zone: e.To.Name, Key: e.To.UpdateKey}, changes, have, want)
}

// Blame implements host.Primary: an update of the SOA succeeds or fails. It costs one serial for each RRset that a server does not take.
func (e Exclusive) Blame(ctx context.Context, failed host.Result, want rrset.SOA) (host.Result, error) {
	if !failsToWrite(failed.Refused) {
		return failed, nil
	}
	probe, err := e.Apply(ctx, plan.Changes{}, failed.SOA, want)
	probe.Sent += failed.Sent
	if err == nil {
		probe.Refused = failed.Refused
	}
	return probe, err
}

// failsToWrite reports whether a server has failed (SERVFAIL) at all RRsets that it refused.
func failsToWrite(refused map[rrset.Key]error) bool {
	for _, err := range refused {
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Rcode != dns.RcodeServerFailure {
			return false
		}
	}
	return len(refused) > 0
}

// Host is a zone on a primary that others run and that belongs to the zone alone.
type Host struct {
	host.Foreign
	Exclusive
}

// NewHost is the zone on a primary.
func NewHost(at *host.Access, reader host.ReadMethod, updates Updater) Host {
	return Host{Foreign: host.Foreign{Access: at, ReadMethod: reader}, Exclusive: Exclusive{To: at, Updates: updates}}
}
