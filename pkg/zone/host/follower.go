package host

import "time"

// A secondary that does not move is ordered to transfer the whole zone, once it was sent so many NOTIFYs and had that much
// time, and then again after a share of the time for which it has not moved: so it follows within that share of the time for
// which it could not, and is ordered some thirty times in the first hour.
const (
	notifiesBeforeTransfer = 3
	transferGrace          = 2 * time.Second
	transferShare          = 4
	lastTransferPause      = 10 * time.Minute
)

// Follower is what is known of a secondary that is not in sync. The zero value is one that is.
type Follower struct {
	// serial is the one that it stays at, since when, and how many NOTIFYs it was sent meanwhile.
	serial   uint32
	since    time.Time
	notifies int
	// retryAt is when it may be ordered once more to transfer the zone, zero while it was not, and Answer what its sidecar
	// said the last time.
	retryAt time.Time
	Answer  string
	// had is the serial with which it was in sync last, nil if it never was.
	had *uint32
	// silentSince is since when it has not answered, zero when it did last.
	silentSince time.Time
}

// NoteAnswer notes whether the secondary answered in a pass, and returns since when it has not.
func (f *Follower) NoteAnswer(answered bool, now time.Time) (silentSince time.Time) {
	switch {
	case answered:
		f.silentSince = time.Time{}
	case f.silentSince.IsZero():
		f.silentSince = now
	}
	return f.silentSince
}

// TransferStep is what is done about a secondary that does not have the zone's serial.
type TransferStep int

const (
	// SendNotify says that there is a newer serial.
	SendNotify TransferStep = iota
	// Retransfer orders it to transfer the whole zone.
	Retransfer
	// WaitForTransfer does nothing: it was ordered a short while ago.
	WaitForTransfer
)

// StaysAt notes the serial at which the secondary was found, and returns since when it has been there.
func (f *Follower) StaysAt(serial uint32, now time.Time) (since time.Time) {
	if f.since.IsZero() || f.serial != serial {
		*f = Follower{serial: serial, since: now, had: f.had}
	}
	return f.since
}

// NextStep decides what to do about a secondary that was found at a serial. One that diverges would call itself up to date,
// being ahead of its primaries or having their serial with other content: only a transfer of the whole zone brings it back
// (RFC 1982 section 3.2).
func (f *Follower) NextStep(serial uint32, diverges bool, now time.Time) TransferStep {
	f.StaysAt(serial, now)
	stuck := f.notifies >= notifiesBeforeTransfer && now.Sub(f.since) >= transferGrace
	switch {
	case (diverges || stuck) && !now.Before(f.retryAt):
		f.retryAt = now.Add(min(lastTransferPause, max(transferGrace, now.Sub(f.since)/transferShare)))
		return Retransfer
	case diverges:
		return WaitForTransfer
	}
	f.notifies++
	return SendNotify
}

// NoteCurrent takes over that the secondary has the zone's serial, and reports whether it has got it since it was seen last.
func (f *Follower) NoteCurrent(serial uint32) (transferred bool) {
	transferred = !f.since.IsZero() || f.had != nil && *f.had != serial
	*f = Follower{had: &serial}
	return transferred
}

// OrderAgain has the order repeated soon: the server did not follow it.
func (f *Follower) OrderAgain(now time.Time) { f.retryAt = now.Add(transferGrace) }

// UntilTransfer is how long it takes until the secondary is to be ordered to transfer the zone for the first time; not due if it is not.
// One that was not ordered in time does not answer.
func (f *Follower) UntilTransfer(now time.Time) (after time.Duration, due bool) {
	at := f.since.Add(transferGrace)
	return at.Sub(now), !f.since.IsZero() && f.retryAt.IsZero() && now.Before(at.Add(transferGrace))
}

// IsFailing reports whether the secondary has not moved although it was ordered to transfer the zone.
func (f *Follower) IsFailing(now time.Time) bool {
	return !f.retryAt.IsZero() && now.Sub(f.since) >= transferGrace
}
