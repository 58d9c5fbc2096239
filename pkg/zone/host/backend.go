// Package host is what the reconciler of zones knows of the places where zones live. A Host is a server with an SOA: those of one line are
// brought to one content and one serial together. A Backend is any other place, for example the key space that CoreDNS reads: it has no
// serial and no transfer, and its step of a pass stands beside that of the primaries. Each kind of place is a type in a package of its own,
// and a line in package kinds; hosttest has the suites that it passes against real servers.
package host

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Errors of Apply after which the caller observes the zone again and plans anew, never sends blindly once more.
var (
	// ErrConflict means that the zone is not (or no longer) the one that was planned against; of what was not applied nothing
	// has an effect.
	ErrConflict = errors.New("the zone was changed by someone else since it was read")
	// ErrUnknown means that something was sent and its reply was lost: it may have been applied or not.
	ErrUnknown = errors.New("the update was sent, but no valid reply came: its outcome is unknown")
)

// Errors that say how far a host is.
var (
	// ErrExists is a zone that the server has already.
	ErrExists = errors.New("the server has the zone already")
	// ErrDiffers is a server that holds something else than it should.
	ErrDiffers = errors.New("the answer is not what it should be")
	// ErrChanged is a zone that changed while it was compared.
	ErrChanged = errors.New("the zone changed while its content was compared with the primaries'")
)

// ErrTransfer is in the chain of an error about a secondary that does not follow its primaries, although it was ordered to transfer the
// zone.
var ErrTransfer = errors.New("the secondary does not follow its primaries")

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

// Unwrap is what happened.
func (e *Error) Unwrap() error { return e.Err }

// Transient reports whether the error may pass without a person.
func (e *Error) Transient() bool { return e.Temporary }

// IsTerminal reports whether an error stays until somebody changes something: a key, a policy, the zone itself.
func IsTerminal(err error) bool {
	var e interface{ Transient() bool }
	return errors.As(err, &e) && !e.Transient()
}

// Observation is what a backend held of one zone at one moment. It is immutable.
type Observation struct {
	// Content is everything that the backend would answer with, whoever put it there, without the SOA. An RRset of which some
	// values are ours and some are others' has all of them.
	Content plan.Content
	// Ours reports whether any value of an RRset was put there through this interface, which is what may be deleted. The place
	// itself says so, so that it outlives us.
	Ours func(rrset.Key) bool
	// Version is what Apply compares with; only the backend that made it reads it.
	Version any
	// Release, if it is not nil, is called when nobody uses the observation any more: it gives back the memory that it is charged with.
	Release func()
}

// Result is how far Apply got, also if it returned an error.
type Result struct {
	// SOA is the zone's after the last message that was answered NOERROR, or the one from before if there was none; the zero SOA of a
	// Backend, which has none.
	SOA rrset.SOA
	// Sent counts messages to a server.
	Sent int
	// Refused has the reason for every RRset that the place (or the encoding) refused; the others were applied.
	Refused map[rrset.Key]error
}

// Backend is a place where zones live that has no SOA of its own to compare with. It is safe for concurrent use; passes over one
// zone never run at the same time. Zone names are canonical, with the dot at the end.
type Backend interface {
	// Check asks the place for something of a zone, or of any for the root: whether it answers and lets us in. The error is an *Error.
	Check(ctx context.Context, zone string) error
	// Observe reads what the backend holds of a zone, from the place itself and from no copy. A zone of which it has nothing is
	// empty content.
	Observe(ctx context.Context, zone string) (Observation, error)
	// Apply applies changes that were planned from an observation, as compare-and-swap: an RRset that differs from what was
	// observed is not changed, and ErrConflict returned. The RRsets of one owner name change together or not at all, and no
	// owner name is without data in between. Values that were not put there through this interface stay.
	Apply(ctx context.Context, zone string, changes plan.Changes, seen Observation) (Result, error)
	// Unsupported returns the RRsets of a zone that the backend cannot hold as they are, alone or beside the others, and why: a
	// sentence that names the type and says what to do. It asks nobody. What servers of the place make themselves, such as the NS
	// records of the apex, is left out.
	Unsupported(zone string, want plan.Content) map[rrset.Key]string
	// Apex says that the NS records of the apex are the place's own, and what to do about one that objects declare there.
	Apex() string
	// Watch calls changed whenever anybody may have changed the zone, until ctx ends. It calls it once at the beginning, and
	// after every time for which it may have missed something.
	Watch(ctx context.Context, zone string, changed func())
	// Close ends connections. What is under way fails.
	Close() error
}

// BackendKind is a kind of places without an SOA.
type BackendKind interface {
	// Takes reports whether a provider is of the kind.
	Takes(p *v1beta1.DNSProvider) bool
	// Read reads what the backend of a provider is made from, and connects to nobody. The backend is made anew when versions, those of the
	// Secrets that were read, are others.
	Read(ctx context.Context, p *v1beta1.DNSProvider, access ProviderAccess) (open func() Backend, versions string, err error)
}

// ProviderAccess is what a kind reads of a provider.
type ProviderAccess struct {
	// Secret returns a Secret in the provider's namespace; entries are those that it needs, in words.
	Secret func(ctx context.Context, p *v1beta1.DNSProvider, name, entries string) (*corev1.Secret, error)
	// Gate counts what the providers of each namespace use; nil if nobody does.
	Gate *outbound.Gate
}

// Unusable makes an error about a Secret, which may be corrected at any time.
func Unusable(err error) error {
	return &Error{Reason: status.SecretUnusable, Temporary: true, Err: err}
}
