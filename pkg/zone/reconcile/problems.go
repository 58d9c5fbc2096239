package reconcile

import (
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
)

// isTerminal reports whether an error stays until somebody changes something: a key, a policy, the zone itself.
func isTerminal(err error) bool {
	var e interface{ Transient() bool }
	return errors.As(err, &e) && !e.Transient()
}

// answerPatience is for how long a server may answer with an error, such as SERVFAIL or NOTAUTH, that passes by itself.
const answerPatience = 10 * time.Second

// failureOf returns the failure that a server's error is to the zone; the zero value if it may pass by itself, because it does
// not last. That the clocks differ passes when somebody sets one.
func failureOf(err error, lasts time.Duration, message string) status.Verdict {
	var missing *host.MissingZoneError
	if errors.As(err, &missing) && isTerminal(err) {
		return status.False(status.ZoneNotFound, message)
	}
	var e *wire.Error
	if !errors.As(err, &e) || !isTerminal(err) && e.TSIGError == 0 && (e.Rcode == dns.RcodeSuccess || lasts < answerPatience) {
		return status.Verdict{}
	}
	return status.False(e.Reason(), message)
}

// errNotCreated is a primary that does not have a paused zone.
var errNotCreated = errors.New("it does not have the zone, which is paused: nothing is created")

// notServed says why a primary does not serve the zone, or what it was sent, although nothing has failed; nil if it does.
func notServed(q primary, paused bool) error {
	switch {
	case errors.Is(q.sent, host.ErrUnknown) && q.sendable.HasChanges():
		return q.sent // It was never applied, and this is all that the server says.
	case q.seen.Authoritative:
		return nil
	case paused:
		return errNotCreated
	}
	return fmt.Errorf("it does not serve the zone yet: %s", q.seen.Message())
}

// unprogrammed says why a primary does not serve an RRset as desired.
func unprogrammed(q primary, key rrset.Key, paused bool) status.Verdict {
	if paused {
		return status.OnlyWatched(q.at.Pod, key)
	}
	if err := q.known.Refusal(key); err != nil {
		return status.RefusedBy(q.at.Pod, err)
	}
	if q.overtaken {
		return status.ChangedByOthers(q.at.Pod, key)
	}
	return status.NotServed(q.at.Pod, key)
}

// contested says that somebody else overwrites an RRset again and again.
func contested(q primary, c content.Contest) string {
	return status.Contest{
		Server: q.at.Pod, Key: c.Key, Seen: c.Seen.Rdata, Declared: c.Declared.Rdata, Standing: c.Standing, Count: c.Count, First: c.First, Next: c.Next,
	}.Message()
}
