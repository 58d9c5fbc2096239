package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
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
		return problem(status.Paused, "%s does not serve %s %s as declared, and the zone is paused: it is only watched",
			q.at.Pod, key.Name, rrset.TypeName(key.Type))
	}
	if err := q.known.Refusal(key); err != nil {
		return problem(status.ReconcileFailed, "%s: %v", q.at.Pod, err)
	}
	if q.overtaken {
		return problem(status.ReconcileFailed, "%s does not serve %s %s as declared: somebody else changes it after each update",
			q.at.Pod, key.Name, rrset.TypeName(key.Type))
	}
	return problem(status.ReconcileFailed, "%s took the update without an error and does not serve %s %s as declared",
		q.at.Pod, key.Name, rrset.TypeName(key.Type))
}

// contested says that somebody else overwrites an RRset again and again. Who that is, DNS does not tell.
func contested(q primary, c content.Contest) string {
	const clock = "2006-01-02 15:04:05 UTC"
	what := fmt.Sprintf("somebody else has overwritten %s on %s %d times since %s, the last time with %s (who is not known here: DNS does not tell; see the server's log)",
		c.Key, q.at.Pod, c.Count, c.First.UTC().Format(clock), cmp.Or(strings.Join(c.Seen.Rdata[:min(len(c.Seen.Rdata), 3)], ", "), "no data"))
	if c.Standing {
		return what + "; at present it is as declared"
	}
	return what + "; it is corrected again after " + c.Next.UTC().Format(clock)
}

// conflicting says what somebody else put into the zone that an RRset cannot stand beside.
func conflicting(q primary, c plan.Conflict) status.Verdict {
	var foreign []string
	for _, key := range c.Foreign {
		foreign = append(foreign, rrset.TypeName(key.Type))
	}
	return problem(status.Conflict, "%s holds %s data at %s that no object declares and that cannot stand beside %s; remove it or rename the record",
		q.at.Pod, strings.Join(foreign, ", "), c.Want.Name, rrset.TypeName(c.Want.Type))
}

// withoutInstances says why a zone has no instance. Which instances other namespaces have, it does not say.
func withoutInstances(zone *v1beta1.DNSZone) string {
	var why []string
	for _, ref := range []string{zone.Spec.ClusterRef, zone.Spec.ClusterProviderRef} {
		if ref != "" {
			why = append(why, fmt.Sprintf("cluster %q has no instances", ref))
		}
	}
	if len(zone.Spec.Bind9InstancesFrom) > 0 {
		selected := fmt.Sprintf("no instance of namespace %s matches bind9InstancesFrom; one of another namespace needs the annotation %s here, with its namespace, and %s itself, with %s",
			zone.Namespace, v1beta1.AllowInstanceNamespacesAnnotation, v1beta1.AllowZoneNamespacesAnnotation, zone.Namespace)
		if listed := zone.Annotations[v1beta1.AllowInstanceNamespacesAnnotation]; listed != "" {
			selected = fmt.Sprintf("no instance of namespace %s matches bind9InstancesFrom, and none of those that the annotation %s lists (%s) matches and lists this namespace in its annotation %s",
				zone.Namespace, v1beta1.AllowInstanceNamespacesAnnotation, listed, v1beta1.AllowZoneNamespacesAnnotation)
		}
		why = append(why, selected)
	}
	if len(why) == 0 {
		return "it has neither clusterRef nor bind9InstancesFrom nor providerRefs"
	}
	return strings.Join(why, "; ")
}
