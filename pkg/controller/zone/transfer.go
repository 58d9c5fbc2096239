package zone

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// A secondary that does not move is told to transfer the whole zone, once it was sent so many NOTIFYs and was given that
// much time, and then less and less often.
const (
	patientNotifies  = 3
	transferPatience = 2 * time.Second
	firstTransfer    = 30 * time.Second
	lastTransfer     = 10 * time.Minute
)

// secondaryState is what is known of a secondary that is not in step.
type secondaryState struct {
	// serial is the one that it stays at, since when, and how many NOTIFYs it was sent meanwhile.
	serial   uint32
	since    time.Time
	notifies int
	// again is when it may be told once more to transfer the zone, pause how long it is then left alone, and answer what
	// its sidecar said the last time.
	again  time.Time
	pause  time.Duration
	answer string
}

// secondary finds or makes the state of a secondary.
func (s *zoneState) secondary(at pod) *secondaryState {
	if s.secondaries[at] == nil {
		s.secondaries[at] = &secondaryState{}
	}
	return s.secondaries[at]
}

// transferError is a secondary that does not follow its primaries, although it was told to.
type transferError struct {
	// have is the serial that it stays at since then, 0 when it has no data; want is that of the primaries. When they are
	// equal, its content is not theirs.
	have, want uint32
	since      time.Time
	// answer is what it said when it was told to transfer the zone.
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
	return fmt.Sprintf("%s: the secondary %s serial %d since %s; told to transfer the zone it answered %q; its log says why it cannot (does it reach the primary, do both have the same transfer key?)",
		status.ZoneTransferFailed, has, e.want, e.since.UTC().Format(time.RFC3339), e.answer)
}

// Is makes it a syncevent.ErrTransfer.
func (e *transferError) Is(target error) bool { return target == syncevent.ErrTransfer }

// nudge is what is done about a secondary that does not have the zone's serial.
type nudge int

const (
	// notifyIt tells it that there is a newer serial.
	notifyIt nudge = iota
	// transferAnew tells it to transfer the whole zone.
	transferAnew
	// waitForIt does nothing: it was told a short while ago.
	waitForIt
)

// next decides what to do about a secondary that was found at a serial. One that is astray would call itself up to date,
// being ahead of its primaries or having their serial with other content: only a transfer of the whole zone brings it back
// (RFC 1982 section 3.2).
func (s *secondaryState) next(serial uint32, astray bool, now time.Time) nudge {
	if s.since.IsZero() || s.serial != serial {
		*s = secondaryState{serial: serial, since: now}
	}
	stuck := s.notifies >= patientNotifies && now.Sub(s.since) >= transferPatience
	switch {
	case (astray || stuck) && !now.Before(s.again):
		s.pause = min(lastTransfer, max(firstTransfer, 2*s.pause))
		s.again = now.Add(s.pause)
		return transferAnew
	case astray:
		return waitForIt
	}
	s.notifies++
	return notifyIt
}

// failing tells whether the secondary has not moved although it was told to transfer the zone.
func (s *secondaryState) failing(now time.Time) bool {
	return s.pause > 0 && now.Sub(s.since) >= transferPatience
}

// hurry brings a secondary along that does not have the zone's serial, or has it with other content.
func (p *pass) hurry(ctx context.Context, server observe.Server, known *secondaryState, seen observe.Observation) (err error) {
	astray := seen.Authoritative && !rrset.SerialLess(seen.Serial, p.event.Serial)
	switch known.next(seen.Serial, astray, p.now()) {
	case notifyIt:
		err = p.notify(ctx, server)
	case transferAnew:
		known.answer, err = p.deps.Sidecar.Command(ctx, fleet.SidecarOf(server), source.DNSName(p.zone), "retransfer")
		if err != nil {
			known.answer = err.Error()
		}
		log.FromContext(ctx).Info("zone retransfer", "zone", p.zone.Spec.ZoneName, "server", server.Pod,
			"serial", seen.Serial, "want", p.event.Serial, "answer", known.answer)
	case waitForIt:
	}
	if known.failing(p.now()) {
		return &transferError{have: seen.Serial, want: p.event.Serial, since: known.since, answer: cmp.Or(known.answer, "nothing")}
	}
	return err
}
