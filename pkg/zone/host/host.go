package host

import (
	"context"
	"iter"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
)

// Host is a zone on one server with an SOA, during one pass. Each kind of server is a type; package kinds has the table. One goroutine
// at a time calls its methods, but for Observe. Errors are *wire.Error, or say in full what is wrong and what to do.
type Host interface {
	// At returns what is known of the server without asking it.
	At() Place
	// SignIn reads the keys by which requests are signed; before it, only Delete and Configure may be called. ForgetKeys has the keys read
	// again, because the server did not know one.
	SignIn(ctx context.Context) error
	ForgetKeys()
	// Serial asks for the SOA. Observe transfers the zone, if it has changed.
	Serial(ctx context.Context) observe.Observation
	Observe(ctx context.Context) observe.Observation
	// Ask asks for one RRset, of which nothing is kept; without data if the server says with authority that the zone has none.
	Ask(ctx context.Context, key rrset.Key) (rrset.RRset, error)
	// Claim removes what another DNSZone has left on the server, and reports whether there was any: it would be kept as foreign data.
	Claim(ctx context.Context) (evicted bool, err error)
	// Delete removes the zone from the server, unless somebody else decides which zones it has.
	Delete(ctx context.Context) error
	// Configure changes how the server has the zone: whom it notifies, who may transfer it, where it transfers from, and with which policy
	// it signs. Whether the server has the zone, and the error, are as the pass ended there. The remark says which policy could not be set.
	Configure(ctx context.Context, hasZone bool, err error, rested bool) (remark string)
	// Remedy returns what to do about a lasting error of the server, as the end of a sentence that describes the error.
	Remedy(err error) string
}

// Place is what a pass knows of a host before its first request.
type Place struct {
	observe.Server
	// ID identifies the server between passes.
	ID types.NamespacedName
	// Line names the primaries that the zone has one content and one serial on: empty for those that belong to the zone alone. A server
	// that others write to as well counts its own serial, which its secondaries follow: it is on a line of its provider's.
	Line string
	// Restores is true if primaries that have lost the zone get it back from this server.
	Restores bool
	// HadContent is true if a zone that is seen there for the first time may have older content.
	HadContent bool
	// Rest is how long the zone may wait until the server is checked again; zero if the server notifies of changes.
	Rest time.Duration
}

// Reader is the way in which a primary's content is read.
type Reader interface {
	// Read returns what the server holds of the zone: all, or what is asked for.
	Read(ctx context.Context, wanted Wanted) observe.Observation
	// Forget has everything read anew.
	Forget()
	// Written notes an update that was applied to exactly the SOA from, and led to the SOA to.
	Written(from, to rrset.SOA, changed iter.Seq[rrset.Key])
	// Knows reports whether the last Read says anything about a key.
	Knows(key rrset.Key) bool
}

// Wanted returns the RRsets that are or were declared, and what is declared now.
type Wanted func() (keys iter.Seq[rrset.Key], declared plan.Content)

// Comparison is the progress of a comparison that is made in parts: which RRsets are as they should be. The zero value is its start.
type Comparison struct{ Equal map[rrset.Key]struct{} }

// Primary is a host that zones are written to.
type Primary interface {
	Host
	Reader
	// Obstacle returns why the server cannot be written to; nil if an attempt makes sense.
	Obstacle() error
	// Apply changes the zone with the SOA have, and leaves it with the SOA want, or with its own if that is not ours to set. It returns
	// ErrConflict if what it changes is not as it was planned against, and ErrUnknown if the reply was lost.
	Apply(ctx context.Context, changes plan.Changes, have, want rrset.SOA) (Result, error)
	// Blame finds out why a server could not write one RRset: because of the RRset, or because it can write nothing at present.
	Blame(ctx context.Context, failed Result, want rrset.SOA) (Result, error)
	// Missing returns why a missing zone cannot be created there; nil if Create can.
	Missing(seen observe.Observation) error
	// Create adds the complete zone in one piece, so that the server never answers from an empty one; ErrExists if it has the zone.
	Create(ctx context.Context, zone Copy) error
	// Apex explains why an NS record that objects declare at the apex does not go there; empty if it does.
	Apex(rdata string) string
}

// Copy is a complete zone.
type Copy struct {
	SOA     rrset.SOA
	Content iter.Seq[rrset.RRset]
	// ReplaceUnloaded replaces a zone that the server has and that it could not load.
	ReplaceUnloaded bool
}

// Secondary is a host that follows its primaries.
type Secondary interface {
	Host
	// Compare returns nil if the server holds the content want, ErrDiffers if it holds another one, and other errors while that is unknown.
	Compare(ctx context.Context, want *observe.Mirror, known *Comparison) (seen observe.Observation, err error)
	// Follow has a server with another serial than its primaries transfer the zone. The error says why it cannot.
	Follow(ctx context.Context, seen observe.Observation, serial uint32, known *Follower) error
	// Repair has a server with their serial and other content transfer the zone.
	Repair(ctx context.Context, seen observe.Observation, serial uint32, known *Follower) error
}

// Zone is what a pass says about its zone to every host. Nobody changes it.
type Zone struct {
	Object *v1beta1.DNSZone
	Key    membership.ZoneKey
	// Name is the canonical name, with the dot at the end.
	Name    string
	Paused  bool
	Signing dnssec.Signing
	// Primaries is where instances serve the zone that secondaries transfer it from, as "IP:port". Notified are those whom primaries
	// notify, TransferKeys the keys of others that may transfer the zone, both as in named.conf.
	Primaries, Notified, TransferKeys []string
	// OnLine counts the primaries that are kept on one serial.
	OnLine int
	Now    func() time.Time
	// LookAgain starts another pass after this one.
	LookAgain func()
}

// Asked is the zone as servers are asked about it.
func (z *Zone) Asked() unreachable.Zone { return unreachable.Zone{Key: z.Key, Name: z.Name} }

// DNS asks servers what they serve. It does not wait for a server that is known to be unreachable.
type DNS interface {
	Serial(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	Observe(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	// ObserveAnew transfers the whole content.
	ObserveAnew(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	// ObserveNames asks for the SOA and for RRsets.
	ObserveNames(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key, questions ...observe.Question) observe.Observation
	// Ask asks for one RRset.
	Ask(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key, about rrset.Key) (rrset.RRset, error)
	ForgetZone(at observe.Peer, zone unreachable.Zone)
}

// Notifier sends a NOTIFY (RFC 1996).
type Notifier func(ctx context.Context, server netip.AddrPort, zone string, serial uint32, key *wire.Key) error

// KeySource has the TSIG keys in Secrets.
type KeySource interface {
	Get(ctx context.Context, secret types.NamespacedName) (*wire.Key, error)
	Invalidate(secret types.NamespacedName, refused *wire.Key)
}
