package observe

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/share"
)

// Limits bound the memory that servers can make an Observer take, whatever they send. Zero values mean the defaults.
type Limits struct {
	// ZoneRecords are the resource records, and ZoneBytes the memory, of one zone on one server.
	ZoneRecords int
	ZoneBytes   int64
	// TotalBytes are the memory of all zones on all servers, with that of the transfers that run. The zones of one namespace
	// get at most half of it, so that no tenant can take what the others need.
	TotalBytes int64
}

// DefaultTotalBytes is the default of Limits.TotalBytes. A controller that works on that content has 1.5 times as much alive, and 2.6
// times as much with garbage; its limit is 1 GiB.
const DefaultTotalBytes = 320 << 20

// TotalFlag is the name of the flag that sets Limits.TotalBytes.
const TotalFlag = "--max-content-bytes"

// DefaultLimits has the limits of package wire for a zone, and DefaultTotalBytes for all.
func DefaultLimits() Limits {
	return Limits{ZoneRecords: wire.DefaultRecords, ZoneBytes: wire.DefaultBytes, TotalBytes: DefaultTotalBytes}
}

// AddFlags registers the flags.
func (l *Limits) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&l.ZoneRecords, wire.RecordsFlag[2:], l.ZoneRecords, "how many resource records of a zone are taken from a DNS server; a zone with more has an error")
	fs.Int64Var(&l.ZoneBytes, wire.BytesFlag[2:], l.ZoneBytes, "how much memory, in bytes, a zone from a DNS server may take; a record takes its text and some 200 bytes")
	fs.Int64Var(&l.TotalBytes, TotalFlag[2:], l.TotalBytes, "how much memory, in bytes, the content of all zones on all DNS servers may take; the zones of one namespace get at most half")
}

// Validate names every flag that is wrong.
func (l *Limits) Validate() error {
	var errs []error
	for flag, value := range map[string]int64{wire.RecordsFlag: int64(l.ZoneRecords), wire.BytesFlag: l.ZoneBytes, TotalFlag: l.TotalBytes} {
		if value < 1 {
			errs = append(errs, fmt.Errorf("%s=%d: must be at least 1", flag, value))
		}
	}
	return errors.Join(errs...)
}

// memory accounts for the content that servers have sent, by the namespaces of the zones.
type memory struct {
	*share.Pool
	limit int64
}

func newMemory(limit int64) memory { return memory{share.NewPool(limit, limit/2), limit} }

// reserve takes memory for the content of a zone of a namespace. It never waits: whoever has memory may keep it for long.
func (m memory) reserve(namespace string, bytes int64) error {
	switch err := m.Take(namespace, bytes); {
	case err == nil:
		return nil
	case errors.Is(err, share.ErrShare):
		return &wire.LimitError{Subject: "the content of all zones of namespace " + namespace, What: fmt.Sprintf("%d bytes, half", m.Share()), Flag: TotalFlag}
	default:
		return &wire.LimitError{Subject: "the content of all zones", What: fmt.Sprintf("%d bytes", m.limit), Flag: TotalFlag}
	}
}
