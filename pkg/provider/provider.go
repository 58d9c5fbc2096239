// Package provider is what the reconciler of zones knows of a place where zones live. Servers with an SOA (a fleet of ours, any
// RFC 2136 server) are brought to one content and one serial together; package rfc2136 sends them their changes. A Backend is any
// other place, for example the key space that CoreDNS reads: it has no serial and no transfer, and its step of a pass stands
// beside that of the primaries. Every implementation passes the suite in providertest against real servers.
package provider

import (
	"context"
	"errors"

	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// Errors of Apply after which the caller observes the zone again and plans anew, never sends blindly once more.
var (
	// ErrConflict means that the zone is not (or no longer) the one that was planned against; of what was not applied nothing
	// has an effect.
	ErrConflict = errors.New("the zone was changed by someone else since it was read")
	// ErrUnknown means that something was sent and its reply was lost: it may have been applied or not.
	ErrUnknown = errors.New("the update was sent, but no valid reply came: its outcome is unknown")
)

// Error is a backend's error that concerns it as a whole: it cannot be reached, or refuses what it is asked for.
type Error struct {
	// Reason is that of a condition, CamelCase: for example Unreachable, AuthenticationFailed, PermissionDenied, NoSpace.
	Reason string
	// Remedy says what to do, as the end of a sentence; empty if waiting is all.
	Remedy string
	// Temporary is true when the error may pass without a person.
	Temporary bool
	// Err is what happened, in the backend's own words. It has no secret.
	Err error
}

// Error implements error: what happened, and what to do.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; " + e.Remedy
}

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// Transient reports whether the error may pass without a person.
func (e *Error) Transient() bool { return e.Temporary }

// Observation is what a backend held of one zone at one moment. It is immutable.
type Observation struct {
	// Content is everything that the backend would answer with, whoever put it there, without the SOA. An RRset of which some
	// values are ours and some are others' has all of them.
	Content plan.Content
	// Version is what Apply compares with; only the backend that made it reads it.
	Version any
}

// Result is how far Apply got, also if it returned an error.
type Result struct {
	// Refused has the reason for every RRset that the backend refused; the others were applied.
	Refused map[rrset.Key]error
}

// Backend is a place where zones live that has no SOA of its own to compare with. It is safe for concurrent use; passes over one
// zone never run at the same time. Zone names are canonical, with the dot at the end.
type Backend interface {
	// Observe reads what the backend holds of a zone, from the place itself and from no copy. A zone of which it has nothing is
	// empty content.
	Observe(ctx context.Context, zone string) (Observation, error)
	// Apply applies changes that were planned from an observation, as compare-and-swap: an RRset that differs from what was
	// observed is not changed, and ErrConflict returned. The RRsets of one owner name change together or not at all, and no
	// owner name is without data in between. Values that were not put there through this interface stay.
	Apply(ctx context.Context, zone string, changes plan.Changes, seen Observation) (Result, error)
	// Unsupported returns why the backend cannot hold an RRset of a zone as it is, as a sentence that names the type and says
	// what to do; empty if it can. It asks nobody.
	Unsupported(zone string, set rrset.RRset) string
	// Watch calls changed whenever anybody may have changed the zone, until ctx ends. It calls it once at the beginning, and
	// after every time for which it may have missed something.
	Watch(ctx context.Context, zone string, changed func())
	// Capabilities returns what the place can do, as it was found to be.
	Capabilities(ctx context.Context) (Capabilities, error)
	// Close ends connections. What is under way fails.
	Close() error
}

// Capabilities is what a place where zones live can do.
type Capabilities struct {
	// RecordTypes are the types that it can hold, by name, sorted; empty if it can hold all.
	RecordTypes []string
	// Serial is true if its zones have an SOA with a serial that changes with the content, Transfer if they can be
	// transferred, Atomic if a plan is applied completely or not at all.
	Serial, Transfer, Atomic bool
	// Wildcards and Delegations are true if it can hold these.
	Wildcards, Delegations bool
}
