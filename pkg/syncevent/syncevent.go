// Package syncevent carries the outcome of a pass over a zone to whoever has to tell about it. The controller emits
// SyncCompleted and knows no listener; listeners write record status, zone status, Events and metrics and know nothing
// of how the pass was done.
package syncevent

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// ServerOutcome is how a pass ended on one server of the zone.
type ServerOutcome struct {
	observe.Server
	// Serial that the server answered with; 0 when it did not.
	Serial uint32
	// Current is true when the server answered with the serial of the pass.
	Current bool
	// Err is why the zone could not be brought to the server; nil while it is only on its way.
	Err error
}

// SyncCompleted is the outcome of one pass over a zone. A pass that found nothing to change is an outcome too.
type SyncCompleted struct {
	// Zone is the object as it was read, Desired what was made of it and its records. Desired is nil when the pass
	// ended before (Problem says why).
	Zone    *v1beta1.DNSZone
	Desired *source.Zone
	// Records are the objects behind Desired.Declarations, by UID.
	Records map[types.UID]v1beta1.Record
	// Changes are what this pass applied to the first primary that had any.
	Changes plan.Changes
	// Serial is the zone's serial after the pass.
	Serial uint32
	// Unprogrammed holds the verdict for every RRset that not all primaries answered with; all others are programmed.
	Unprogrammed map[rrset.Key]status.Verdict
	// Released are the objects whose data has left the zone: deleted ones, and ones the zone no longer selects.
	Released []v1beta1.Record
	// Servers holds one entry for each server of the zone.
	Servers []ServerOutcome
	// Problem is why the whole zone is not programmed; its Status is True when there is none.
	Problem status.Verdict
	// At is when the pass ended.
	At time.Time
}

// Listener is told about every completed pass. An error means that what it had to tell was not told, and that it
// wants to be told again; it never undoes the pass.
type Listener interface {
	OnSyncCompleted(context.Context, SyncCompleted) error
}

// Notifier hands a completed pass to its listeners, in order.
type Notifier []Listener

// Notify tells every listener, whatever the others return.
func (n Notifier) Notify(ctx context.Context, event SyncCompleted) error {
	var errs []error
	for _, l := range n {
		errs = append(errs, l.OnSyncCompleted(ctx, event))
	}
	return errors.Join(errs...)
}
