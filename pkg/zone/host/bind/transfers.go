package bind

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// transferError is a secondary that does not follow its primaries, although it was ordered to transfer the zone.
type transferError struct {
	// have is the serial that it stays at since then, unless it isEmpty; want is that of the primaries. When they are equal, its content is
	// not theirs.
	have, want uint32
	isEmpty    bool
	since      time.Time
	// answer is what it said to the order.
	answer string
}

func (e *transferError) Error() string {
	has := fmt.Sprintf("stays at serial %d instead of", e.have)
	switch {
	case e.isEmpty:
		has = "has no data instead of"
	case e.have == e.want:
		has = "holds other data than the primaries on"
	}
	return fmt.Sprintf("%s: the secondary %s serial %d since %s; its answer to the request to transfer the zone was %q; its log says why it cannot (does it reach the primary, do both have the same transfer key?)",
		status.ZoneTransferFailed, has, e.want, e.since.UTC().Format(time.RFC3339), e.answer)
}

// Is makes it a host.ErrTransfer.
func (e *transferError) Is(target error) bool { return target == host.ErrTransfer }

// Follow implements host.Secondary.
func (h *Host) Follow(ctx context.Context, seen observe.Observation, serial uint32, known *host.Follower) error {
	if seen.Authoritative {
		if err := h.demote(ctx); err != nil {
			return err
		}
		return h.hastenTransfer(ctx, seen, serial, known)
	}
	err := h.createSecondary(ctx)
	if !bindcar.IsExists(err) {
		return err
	}
	// The zone is there and has no data yet: the transfer is under way, or has to be started.
	if evicted, err := h.Claim(ctx); err != nil || evicted {
		return err
	}
	return h.hastenTransfer(ctx, seen, serial, known)
}

// Repair implements host.Secondary.
func (h *Host) Repair(ctx context.Context, seen observe.Observation, serial uint32, known *host.Follower) error {
	return h.hastenTransfer(ctx, seen, serial, known)
}

// hastenTransfer brings a secondary along that does not have the zone's serial, or has it with other content.
func (h *Host) hastenTransfer(ctx context.Context, seen observe.Observation, serial uint32, known *host.Follower) (err error) {
	diverges := seen.Authoritative && !rrset.SerialLess(seen.Serial, serial)
	switch known.NextStep(seen.Serial, diverges, h.Now()) {
	case host.SendNotify:
		err = h.Notify(ctx, serial)
	case host.Retransfer:
		known.Answer, err = h.sidecar.Command(ctx, h.address(), h.name(), "retransfer")
		if err != nil {
			known.Answer = err.Error()
			known.OrderAgain(h.Now())
		}
		log.FromContext(ctx).Info("zone retransfer", "zone", h.Object.Spec.ZoneName, "server", h.Server.Pod,
			"serial", seen.Serial, "want", serial, "answer", known.Answer)
	case host.WaitForTransfer:
	}
	if known.IsFailing(h.Now()) {
		return &transferError{have: seen.Serial, isEmpty: !seen.Authoritative, want: serial, since: known.StaysAt(seen.Serial, h.Now()), answer: cmp.Or(known.Answer, "nothing")}
	}
	return err
}
