package host

import (
	"context"
	"errors"
	"iter"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Access is how every server with an SOA is asked, whoever runs it: kinds embed it.
type Access struct {
	*Zone
	Server   observe.Server
	DNS      DNS
	Notifier Notifier
	Keys     KeySource
	// The names of the Secrets with the keys, and the keys once SignIn has read them: that for updates, and that for questions and transfers.
	UpdateSecret, TransferSecret types.NamespacedName
	UpdateKey, TransferKey       *wire.Key
}

// IDOf identifies a server between passes. One that a provider has by host name is another when the name has another address: what is
// known of the former one says nothing about it.
func IDOf(s observe.Server) types.NamespacedName {
	id := types.NamespacedName{Namespace: s.Namespace, Name: s.Pod}
	if s.Provider != "" {
		id.Name += " " + s.Addr.String()
	}
	return id
}

// LineOf names the line of a server.
func LineOf(s observe.Server) string {
	if s.Shared {
		return s.Provider
	}
	return ""
}

// At implements Host.
func (a *Access) At() Place {
	return Place{Server: a.Server, ID: IDOf(a.Server), Line: LineOf(a.Server)}
}

// SignIn implements Host. Only a primary has a key for updates.
func (a *Access) SignIn(ctx context.Context) error {
	var errs [2]error
	if a.Server.Role == observe.Primary {
		a.UpdateKey, errs[0] = a.Keys.Get(ctx, a.UpdateSecret)
	}
	a.TransferKey, errs[1] = a.Keys.Get(ctx, a.TransferSecret)
	return errors.Join(errs[:]...)
}

// ForgetKeys implements Host.
func (a *Access) ForgetKeys() {
	if a.Server.Role == observe.Primary {
		a.Keys.Invalidate(a.UpdateSecret, a.UpdateKey)
	}
	a.Keys.Invalidate(a.TransferSecret, a.TransferKey)
}

// Serial implements Host.
func (a *Access) Serial(ctx context.Context) observe.Observation {
	return a.DNS.Serial(ctx, a.Server.Peer(), a.Asked(), a.TransferKey)
}

// Observe implements Host.
func (a *Access) Observe(ctx context.Context) observe.Observation {
	return a.DNS.Observe(ctx, a.Server.Peer(), a.Asked(), a.TransferKey)
}

// Ask implements Host.
func (a *Access) Ask(ctx context.Context, key rrset.Key) (rrset.RRset, error) {
	return a.DNS.Ask(ctx, a.Server.Peer(), a.Asked(), a.TransferKey, key)
}

// Notify sends a NOTIFY that the zone changed, beside what primaries send.
func (a *Access) Notify(ctx context.Context, serial uint32) error {
	log.FromContext(ctx).Info("zone transfer triggered", "zone", a.Object.Spec.ZoneName, "server", a.Server.Pod, "serial", serial)
	return a.Notifier(ctx, a.Server.Addr, a.Name, serial, a.TransferKey)
}

// RefusalRemedy is the part of a Remedy that is about no key.
func RefusalRemedy(e *wire.Error) string {
	switch {
	case e.Rcode == dns.RcodeRefused && e.Op == "transfer":
		return "; let the transfer key transfer the zone (allow-transfer)"
	case e.Rcode == dns.RcodeRefused:
		return "; let the update key update the zone (allow-update), and see that the zone is a primary one and not frozen"
	}
	return ""
}

// ClockRemedy is the part of a Remedy about a key that a server does not know.
func ClockRemedy(e *wire.Error) string {
	if e.TSIGError == 0 {
		return ", and see that its clock is right"
	}
	return ""
}

// ByTransfer reads a zone by transfers.
type ByTransfer struct{ *Access }

// Read implements Reader.
func (r ByTransfer) Read(ctx context.Context, _ Wanted) observe.Observation { return r.Observe(ctx) }

// Forget implements Reader.
func (r ByTransfer) Forget() { r.DNS.ForgetZone(r.Server.Peer(), r.Asked()) }

// Written implements Reader: the next transfer has what was written.
func (ByTransfer) Written(_, _ rrset.SOA, _ iter.Seq[rrset.Key]) {}

// Knows implements Reader.
func (ByTransfer) Knows(rrset.Key) bool { return true }

// Partial implements ReadMethod.
func (ByTransfer) Partial() error { return nil }

// Compare implements Secondary: it transfers the zone in whole.
func (r ByTransfer) Compare(ctx context.Context, want *observe.Mirror, _ *Comparison) (observe.Observation, error) {
	have := r.DNS.ObserveAnew(ctx, r.Server.Peer(), r.Asked(), r.TransferKey)
	switch {
	case have.Err != nil:
		return have, have.Err
	case have.Mirror == nil || have.Serial != want.SOA.Serial:
		return have, ErrChanged
	case !have.Mirror.SameContent(want):
		return have, ErrDiffers
	}
	return have, nil
}
