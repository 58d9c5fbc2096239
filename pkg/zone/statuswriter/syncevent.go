// Package statuswriter takes over the outcome of each pass over a zone, without blocking it: a Writer writes statuses and Events, Metrics
// counts. They know nothing of how the pass was done.
package statuswriter

import (
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// ServerOutcome is how a pass ended on one server of the zone.
type ServerOutcome struct {
	observe.Server
	// HasZone is true when the server answered with authority, and Serial is the one that it answered with.
	HasZone bool
	Serial  uint32
	// Current is true when the server answered with the serial of the pass.
	Current bool
	// SilentSince is since when passes have had no answer from a secondary, zero when this one had.
	SilentSince time.Time
	// Err is why the zone could not be brought to the server, host.ErrTransfer in its chain if it is a secondary that does not follow;
	// nil while it is only on its way.
	Err error
}

// BackendOutcome is how a pass ended at a provider that is no DNS server: nil if its content was read back.
type BackendOutcome struct {
	Provider string
	Err      error
}

// SyncCompleted is the outcome of one pass over a zone. A pass that found nothing to change is an outcome too.
type SyncCompleted struct {
	// Zone is the object as it was read, Desired what was made of it and its objects. Desired is nil when the pass
	// ended before (Programmed says why).
	Zone    *v1beta1.DNSZone
	Desired *source.Zone
	// Touched are the objects whose outcome may differ from that in the zone's last event; All means every object of
	// Desired, whatever Touched holds.
	Touched []source.ObjectKey
	All     bool
	// Since is when the earliest change that this pass took was noticed; zero when it took none.
	Since time.Time
	// Rebuilt is true when the pass made Desired anew, after a start or because the zone's spec or its servers changed: Since is then
	// when that was noticed, and the declarations may have changed earlier.
	Rebuilt bool
	// Changes are what this pass applied to the first primary that had any.
	Changes plan.Changes
	// Serial is the zone's serial after the pass; any may be one, so SerialKnown says whether the pass found it out.
	Serial      uint32
	SerialKnown bool
	// Unprogrammed holds the verdict for every RRset that not all primaries answered with; all others are programmed.
	Unprogrammed map[rrset.Key]status.Verdict
	// Released are the objects whose data has left the zone: deleted ones, and ones the zone no longer selects.
	Released []source.Object
	// Held are objects that another zone takes and that cannot be released yet, each with the reason.
	Held map[source.ObjectKey]string
	// Foreign counts the RRsets of the zone that nobody declares, ForeignSample holds at most 100 of them, sorted.
	Foreign       int
	ForeignSample []rrset.Key
	// Paused is true when the zone was only watched; Pending then counts the RRsets that would change.
	Paused  bool
	Pending int
	// HeldPlan names what the zone's guard holds back, and Guarded says so; empty and the zero value if that is nothing.
	HeldPlan string
	Guarded  status.Verdict
	// Drift counts the RRsets that this pass corrected after somebody else had changed them.
	Drift int
	// Contested says, for each RRset that somebody else overwrites again and again, on which server and with what.
	Contested []string
	// NameServers says how the published addresses of the zone's name servers follow those of Services; empty if they are unchanged.
	NameServers string
	// Removed holds these RRsets with the values that somebody else had added; an RRset that others only took from has none.
	Removed map[rrset.Key][]string
	// AlsoSelected are the objects that this zone selects and an older zone has; OlderZones names those zones, as far as
	// they are in this zone's namespace.
	AlsoSelected []source.ObjectKey
	OlderZones   []string
	// DNSSEC is how the zone is signed; nil when it is not, or when that is not known.
	DNSSEC      *v1beta1.DNSSECStatus
	DNSSECKnown bool
	// Delegated says how far the zones above have the zone's DS records; the zero value if there is none that is declared here.
	Delegated status.Verdict
	// DelegationBehind is since when a zone above has had other DS records than those that the zone asks for; zero if none has.
	DelegationBehind time.Time
	// Arrivals are since when the zone has been on its hosts.
	Arrivals *v1beta1.ZoneArrivals
	// Remark is what else a reader of the zone should know.
	Remark string
	// Servers holds one entry for each server of the zone.
	Servers []ServerOutcome
	// Backends holds one entry for each provider of the zone that is no DNS server.
	Backends []BackendOutcome
	// Programmed says whether the zone as a whole is programmed, and if not, why.
	Programmed status.Verdict
	// Failure is what keeps the zone or a part of it from being programmed if only a person can end that; the zero value if there is none.
	Failure status.Verdict
	// At is when the pass ended, Took how long it was.
	At   time.Time
	Took time.Duration
}
