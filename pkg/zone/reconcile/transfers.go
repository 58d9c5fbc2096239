package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// A secondary that does not move is ordered to transfer the whole zone, once it was sent so many NOTIFYs and had that much
// time, and then again after a share of the time for which it has not moved: so it follows within that share of the time for
// which it could not, and is ordered some thirty times in the first hour.
const (
	notifiesBeforeTransfer = 3
	transferGrace          = 2 * time.Second
	transferShare          = 4
	lastTransferPause      = 10 * time.Minute
)

// secondaryState is what is known of a secondary that is not in sync.
type secondaryState struct {
	// serial is the one that it stays at, since when, and how many NOTIFYs it was sent meanwhile.
	serial   uint32
	since    time.Time
	notifies int
	// retryAt is when it may be ordered once more to transfer the zone, zero while it was not, and answer what its sidecar
	// said the last time.
	retryAt time.Time
	answer  string
	// had is the serial with which it was in sync last.
	had uint32
	// silentSince is since when it has not answered, zero when it did last.
	silentSince time.Time
}

// noteAnswer takes note of whether the secondary answered in a pass, and returns since when it has not.
func (s *secondaryState) noteAnswer(answered bool, now time.Time) (silentSince time.Time) {
	switch {
	case answered:
		s.silentSince = time.Time{}
	case s.silentSince.IsZero():
		s.silentSince = now
	}
	return s.silentSince
}

// transferError is a secondary that does not follow its primaries, although it was ordered to transfer the zone.
type transferError struct {
	// have is the serial that it stays at since then, 0 when it has no data; want is that of the primaries. When they are
	// equal, its content is not theirs.
	have, want uint32
	since      time.Time
	// answer is what it said to the order.
	answer string
}

func (e *transferError) Error() string {
	has := fmt.Sprintf("stays at serial %d instead of", e.have)
	switch e.have {
	case 0:
		has = "has no data instead of"
	case e.want:
		has = "holds other data than the primaries on"
	}
	return fmt.Sprintf("%s: the secondary %s serial %d since %s; its answer to the request to transfer the zone was %q; its log says why it cannot (does it reach the primary, do both have the same transfer key?)",
		status.ZoneTransferFailed, has, e.want, e.since.UTC().Format(time.RFC3339), e.answer)
}

// Is makes it a host.ErrTransfer.
func (e *transferError) Is(target error) bool { return target == host.ErrTransfer }

// transferStep is what is done about a secondary that does not have the zone's serial.
type transferStep int

const (
	// sendNotify says that there is a newer serial.
	sendNotify transferStep = iota
	// retransfer orders it to transfer the whole zone.
	retransfer
	// waitForTransfer does nothing: it was ordered a short while ago.
	waitForTransfer
)

// nextStep decides what to do about a secondary that was found at a serial. One that diverges would call itself up to date,
// being ahead of its primaries or having their serial with other content: only a transfer of the whole zone brings it back
// (RFC 1982 section 3.2).
func (s *secondaryState) nextStep(serial uint32, diverges bool, now time.Time) transferStep {
	if s.since.IsZero() || s.serial != serial {
		*s = secondaryState{serial: serial, since: now, had: s.had}
	}
	stuck := s.notifies >= notifiesBeforeTransfer && now.Sub(s.since) >= transferGrace
	switch {
	case (diverges || stuck) && !now.Before(s.retryAt):
		s.retryAt = now.Add(min(lastTransferPause, max(transferGrace, now.Sub(s.since)/transferShare)))
		return retransfer
	case diverges:
		return waitForTransfer
	}
	s.notifies++
	return sendNotify
}

// noteCurrent takes over that the secondary has the zone's serial, and reports whether it has got it since it was seen last.
func (s *secondaryState) noteCurrent(serial uint32) (transferred bool) {
	transferred = !s.since.IsZero() || s.had != 0 && s.had != serial
	*s = secondaryState{had: serial}
	return transferred
}

// orderAgain has the order repeated soon: the server did not follow it.
func (s *secondaryState) orderAgain(now time.Time) {
	s.retryAt = now.Add(transferGrace)
}

// untilTransfer returns how long the zone may rest until a secondary is to be ordered to transfer it for the first time;
// idleInterval if none is. One that was not ordered in time does not answer.
func (s *zoneState) untilTransfer(now time.Time) time.Duration {
	after := idleInterval
	for _, known := range s.secondaries {
		due := known.since.Add(transferGrace)
		if !known.since.IsZero() && known.retryAt.IsZero() && now.Before(due.Add(transferGrace)) {
			after = min(after, max(due.Sub(now), firstInterval))
		}
	}
	return after
}

// isFailing reports whether the secondary has not moved although it was ordered to transfer the zone.
func (s *secondaryState) isFailing(now time.Time) bool {
	return !s.retryAt.IsZero() && now.Sub(s.since) >= transferGrace
}

// hastenTransfer brings a secondary along that does not have the zone's serial, or has it with other content.
func (s secondarySync) hastenTransfer(ctx context.Context, server observe.Server, known *secondaryState, seen observe.Observation) (err error) {
	diverges := seen.Authoritative && !rrset.SerialLess(seen.Serial, s.serial)
	switch known.nextStep(seen.Serial, diverges, s.now()) {
	case sendNotify:
		err = s.notifySecondary(ctx, server)
	case retransfer:
		known.answer, err = s.sidecar.Command(ctx, inventory.SidecarOf(server), source.DNSName(s.zone), "retransfer")
		if err != nil {
			known.answer = err.Error()
			known.orderAgain(s.now())
		}
		log.FromContext(ctx).Info("zone retransfer", "zone", s.zone.Spec.ZoneName, "server", server.Pod,
			"serial", seen.Serial, "want", s.serial, "answer", known.answer)
	case waitForTransfer:
	}
	if known.isFailing(s.now()) {
		return &transferError{have: seen.Serial, want: s.serial, since: known.since, answer: cmp.Or(known.answer, "nothing")}
	}
	return err
}
