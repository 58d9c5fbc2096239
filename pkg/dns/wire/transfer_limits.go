package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"
)

// Limits bound what one transfer may cost, whatever the server sends. They count decoded data: name compression
// (RFC 1035 section 4.1.4) packs a thousand characters into two bytes.
type Limits struct {
	// Records are the resource records of a transfer, those that an incremental one deletes included. Default: DefaultRecords.
	Records int
	// Bytes are the memory that the decoded records take. Default: DefaultBytes.
	Bytes int64
	// Time is from the first packet to the last. Default: one minute.
	Time time.Duration
	// Reserve, if not nil, is called for memory that the transfer is about to take, in bytes; an error ends the transfer.
	Reserve func(bytes int64) error
}

// Defaults of Limits: five times a zone of 100,000 records.
const (
	DefaultRecords = 500_000
	DefaultBytes   = 128 << 20
)

// Names of the flags that set limits, for messages.
const (
	RecordsFlag = "--max-zone-records"
	BytesFlag   = "--max-zone-bytes"
)

// ErrTooLarge means that a server sent more than a limit allows. Every LimitError is one.
var ErrTooLarge = errors.New("more data than allowed")

// LimitError is data that was not taken because it exceeds a limit.
type LimitError struct {
	// What was exceeded, as in "500000 records", by what ("the zone"), and the flag that sets the limit, if one does.
	What, Subject, Flag string
}

// Error implements error.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("%s exceeds the limit of %s", e.Subject, e.What)
	if e.Flag != "" {
		text += ", which " + e.Flag + " sets"
	}
	return text
}

// Is makes it an ErrTooLarge.
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// TransferOption changes how a transfer is made.
type TransferOption func(*Limits)

// WithLimits replaces the default limits; values of zero mean the defaults.
func WithLimits(l Limits) TransferOption { return func(t *Limits) { *t = l } }

func limitsOf(options []TransferOption) Limits {
	var l Limits
	for _, o := range options {
		o(&l)
	}
	if l.Records <= 0 {
		l.Records = DefaultRecords
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Time <= 0 {
		l.Time = transferTimeout
	}
	return l
}

// recordOverhead is what a record takes beside its text, in bytes: a Record, and its share of the map that it ends up in.
const recordOverhead = 200

// reservationSize is how many bytes are reserved at a time.
const reservationSize = 256 << 10

// usage counts what a transfer has taken so far.
type usage struct {
	limits          Limits
	records         int
	bytes, reserved int64
}

// add counts one record with the length of its text.
func (u *usage) add(text int) error {
	u.records++
	u.bytes += recordOverhead + int64(text)
	switch {
	case u.records > u.limits.Records:
		return &LimitError{Subject: "the zone", What: fmt.Sprintf("%d records", u.limits.Records), Flag: RecordsFlag}
	case u.bytes > u.limits.Bytes:
		return &LimitError{Subject: "the zone", What: fmt.Sprintf("%d bytes", u.limits.Bytes), Flag: BytesFlag}
	case u.bytes > u.reserved && u.limits.Reserve != nil:
		more := max(reservationSize, u.bytes-u.reserved)
		if err := u.limits.Reserve(more); err != nil {
			return err
		}
		u.reserved += more
	}
	return nil
}

// isZoneData is false for types that no zone holds: meta types and query types (RFC 6895 section 3.1).
func isZoneData(rrtype uint16) bool {
	return rrtype != dns.TypeNone && rrtype != dns.TypeOPT && (rrtype < dns.TypeNXNAME || rrtype > dns.TypeANY)
}
