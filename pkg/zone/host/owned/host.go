// Package owned is a zone on a primary to which several owners write, each with values of its own: what package ledger says there is whose.
// Values and ledger of a name change in one message. Whoever leaves takes its own values and claims only.
package owned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/dns/ledger"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/shared"
)

// maxTries is how often values are deleted while others change the same names.
const maxTries = 10

// Host implements host.Primary.
type Host struct {
	shared.Host
	updates rfc2136.Updater
}

// New is the zone on a primary.
func New(at *host.Access, reader host.ReadMethod, updates rfc2136.Updater) Host {
	return Host{shared.New(at, reader, updates), updates}
}

// Obstacle implements host.Primary.
func (h Host) Obstacle() error {
	if !ledger.IsOwner(h.Server.Owner) {
		return errors.New("the name of this owner is not known yet: the provider's status.owner is empty")
	}
	return h.Host.Obstacle()
}

// Apply implements host.Primary.
func (h Host) Apply(ctx context.Context, changes plan.Changes, have, want rrset.SOA) (host.Result, error) {
	return h.updates.Apply(ctx, rfc2136.Target{
		Server: h.Server.Addr, Zone: h.Name, Key: h.UpdateKey, Shared: true,
		Group: func(key rrset.Key) string { return ledger.Group(h.Name, key) },
	}, changes, have, want)
}

// Delete implements host.Host: it deletes the owner's values and claims.
func (h Host) Delete(ctx context.Context) error {
	if err := errors.Join(h.Obstacle(), h.signIn(ctx)); err != nil {
		return h.failed(err)
	}
	for range maxTries {
		seen := h.DNS.ObserveAnew(ctx, h.Server.Peer(), h.Asked(), h.TransferKey)
		switch {
		case seen.Err != nil:
			return h.failed(seen.Err)
		case seen.Mirror == nil:
			return nil // It has no such zone.
		}
		view := ledger.View{Zone: h.Name, Owner: h.Server.Owner, Declared: plan.Map{}, Observed: seen.Mirror}.Remember()
		changes := plan.Calculate(view, seen.Mirror, view.IsDeletable, seen.SOA, seen.SOA)
		if !changes.HasChanges() {
			return nil
		}
		result, err := h.Apply(ctx, changes, seen.SOA, seen.SOA)
		if err == nil {
			err = errors.Join(slices.Collect(maps.Values(result.Refused))...)
		}
		if err != nil && !errors.Is(err, host.ErrConflict) && !errors.Is(err, host.ErrUnknown) {
			return h.failed(err)
		}
	}
	return h.failed(host.ErrConflict)
}

// signIn reads the keys. Those that were read before count if that fails: the Secrets may be gone with the zone.
func (h Host) signIn(ctx context.Context) error {
	update, transfer := h.UpdateKey, h.TransferKey
	err := h.SignIn(ctx)
	if err != nil && update != nil && transfer != nil {
		h.UpdateKey, h.TransferKey, err = update, transfer, nil
	}
	return err
}

func (h Host) failed(err error) error {
	if wire.MayConcernKey(err) {
		h.ForgetKeys()
	}
	return fmt.Errorf("deleting the values of %s from zone %s on %s: %w%s", h.Server.Owner, h.Name, h.Server.Pod, err, h.Remedy(err))
}
