package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// ForeignRest is how often a zone is looked at on servers that others run: they notify nobody here.
const ForeignRest = 30 * time.Second

// ErrSignedHere is a primary that others run of a zone that an instance of ours signs.
var ErrSignedHere = errors.New("the zone is signed by an instance, and a primary that others run cannot have its signatures: set dnssecPolicy to none, or remove the provider from spec.providerRefs")

// Foreign is what servers have in common that others run: nobody but they create, delete or configure zones there. Kinds embed it.
type Foreign struct {
	*Access
	ReadMethod
}

// ReadMethod is how a server is read that others run.
type ReadMethod interface {
	Reader
	// Compare is that of a Secondary.
	Compare(ctx context.Context, want *observe.Mirror, known *Comparison) (seen observe.Observation, err error)
	// Partial returns why the zone's other primaries cannot be kept equal to this one; nil if they can.
	Partial() error
}

// At implements Host: a primary has lost the zone, or needs nobody.
func (f Foreign) At() Place {
	at := f.Access.At()
	at.HadContent, at.Rest = true, ForeignRest
	return at
}

// Obstacle implements Primary.
func (f Foreign) Obstacle() error {
	switch {
	case f.Signing.IsSigned():
		return ErrSignedHere
	case !f.Server.Shared && f.OnLine > 1 && f.Partial() != nil:
		return f.Partial()
	case !f.Server.Addr.IsValid():
		return errors.New(f.Server.Message)
	}
	return nil
}

// Claim implements Host.
func (Foreign) Claim(context.Context) (evicted bool, err error) { return false, nil }

// Delete implements Host.
func (Foreign) Delete(context.Context) error { return nil }

// Configure implements Host.
func (Foreign) Configure(context.Context, bool, error, bool) (remark string) { return "" }

// Missing implements Primary.
func (Foreign) Missing(seen observe.Observation) error {
	return &MissingZoneError{rcode: seen.Rcode, detail: seen.Message()}
}

// Create implements Primary; Missing keeps everybody from calling it.
func (Foreign) Create(context.Context, Copy) error { return errors.ErrUnsupported }

// Apex implements Primary.
func (Foreign) Apex(string) string { return "" }

// Remedy implements Host.
func (f Foreign) Remedy(err error) string {
	var e *wire.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.TSIGError == dns.RcodeBadTime:
		return "; set the server's clock"
	case e.RefusesKey() && f.UpdateSecret.Name == "":
		return fmt.Sprintf("; compare name, algorithm and secret in Secret %s with the server's key%s; it is read again every minute", f.TransferSecret, ClockRemedy(e))
	case e.RefusesKey():
		return fmt.Sprintf("; compare name, algorithm and secret in Secret %s (updates) and Secret %s (questions and transfers) with the server's keys%s; they are read again every minute", f.UpdateSecret, f.TransferSecret, ClockRemedy(e))
	case e.Rcode == dns.RcodeRefused && errors.Is(e.Err, wire.ErrUnsigned):
		return fmt.Sprintf("; compare the key in Secret %s with the server's, as it has not signed its answer, and let it update the zone", f.UpdateSecret)
	case e.Rcode == dns.RcodeNotAuth && e.TSIGError == 0:
		return "; see that the zone is a primary one there, and that no view keeps it from the keys"
	}
	if e.Rcode == dns.RcodeRefused && e.Op == "update" && !f.Server.Shared {
		return "; let the update key update the zone, its SOA record as well (allow-update, or an update-policy that includes SOA), or set writers: Shared in the DNSProvider, with which the SOA is left to the server; and see that the zone is a primary one and not frozen"
	}
	return RefusalRemedy(e)
}

// MissingZoneError is a zone that a primary does not have and that cannot be created there.
type MissingZoneError struct {
	rcode  int
	detail string
}

// Error implements error.
func (e *MissingZoneError) Error() string {
	return fmt.Sprintf("%s; create the zone there, as a primary zone that the update key may update and the transfer key may transfer: nobody else does on servers of a DNSProvider", e.detail)
}

// Transient reports whether it may pass by itself.
func (e *MissingZoneError) Transient() bool { return e.rcode == dns.RcodeServerFailure }
