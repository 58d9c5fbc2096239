package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
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
	var missing *missingZoneError
	if errors.As(err, &missing) && isTerminal(err) {
		return status.False(status.ZoneNotFound, message)
	}
	var e *wire.Error
	if !errors.As(err, &e) || !isTerminal(err) && e.TSIGError == 0 && (e.Rcode == dns.RcodeSuccess || lasts < answerPatience) {
		return status.Verdict{}
	}
	return status.False(e.Reason(), message)
}

// remedyFor says what to do about a server's error that does not pass by itself, as the end of a sentence that says what it
// is.
func (s scope) remedyFor(err error, server observe.Server) string {
	var e *wire.Error
	if !errors.As(err, &e) {
		return ""
	}
	update, transfer := s.secretsOf(server)
	clock := ""
	if e.TSIGError == 0 {
		clock = ", and see that its clock is right"
	}
	switch {
	case e.TSIGError == dns.RcodeBadTime && isForeignServer(server):
		return "; set the server's clock"
	case e.TSIGError == dns.RcodeBadTime:
		return "; set the clocks of the nodes that the server and the controller run on"
	case e.RefusesKey() && isForeignServer(server) && update.Name == "":
		return fmt.Sprintf("; compare name, algorithm and secret in Secret %s with the server's key%s; it is read again every minute", transfer, clock)
	case e.RefusesKey() && isForeignServer(server):
		return fmt.Sprintf("; compare name, algorithm and secret in Secret %s (updates) and Secret %s (questions and transfers) with the server's keys%s; they are read again every minute", update, transfer, clock)
	case e.Rcode == dns.RcodeRefused && errors.Is(e.Err, wire.ErrUnsigned) && isForeignServer(server):
		return fmt.Sprintf("; compare the key in Secret %s with the server's, as it has not signed its answer, and let it update the zone", update)
	case e.RefusesKey() && update.Name != "":
		return fmt.Sprintf("; compare Secrets %s and %s with what rndc tsig-list says in the pod, which loads changed keys within two minutes; they are read again every minute",
			update, transfer)
	case e.Rcode == dns.RcodeNotAuth && e.TSIGError == 0 && isForeignServer(server):
		return "; see that the zone is a primary one there, and that no view keeps it from the keys"
	case e.Rcode == dns.RcodeNotAuth && e.TSIGError == 0:
		return "; see that no view of the server keeps the zone from the keys of Lockstep"
	case e.Rcode == dns.RcodeRefused && e.Op == "transfer":
		return "; let the transfer key transfer the zone (allow-transfer)"
	case e.Rcode == dns.RcodeRefused:
		return "; let the update key update the zone (allow-update), and see that the zone is a primary one and not frozen"
	}
	return ""
}

// notServed says why a primary does not serve the zone although nothing has failed.
func notServed(q *primary, paused bool) error {
	if paused {
		return errors.New("it does not have the zone, which is paused: nothing is created")
	}
	return fmt.Errorf("it does not serve the zone yet: %s", q.seen.Message())
}

// unprogrammed says why a primary does not serve an RRset as desired.
func unprogrammed(q *primary, key rrset.Key, paused bool) status.Verdict {
	if paused {
		return problem(status.Paused, "%s does not serve %s %s as declared, and the zone is paused: it is only watched",
			q.server.Pod, key.Name, rrset.TypeName(key.Type))
	}
	if err := q.known.Refusal(key); err != nil {
		return problem(status.ReconcileFailed, "%s: %v", q.server.Pod, err)
	}
	if q.overtaken {
		return problem(status.ReconcileFailed, "%s does not serve %s %s as declared: somebody else changes it after each update",
			q.server.Pod, key.Name, rrset.TypeName(key.Type))
	}
	return problem(status.ReconcileFailed, "%s took the update without an error and does not serve %s %s as declared",
		q.server.Pod, key.Name, rrset.TypeName(key.Type))
}

// conflicting says what somebody else put into the zone that an RRset cannot stand beside.
func conflicting(q *primary, c plan.Conflict) status.Verdict {
	var foreign []string
	for _, key := range c.Foreign {
		foreign = append(foreign, rrset.TypeName(key.Type))
	}
	return problem(status.Conflict, "%s holds %s data at %s that no object declares and that cannot stand beside %s; remove it or rename the record",
		q.server.Pod, strings.Join(foreign, ", "), c.Want.Name, rrset.TypeName(c.Want.Type))
}
