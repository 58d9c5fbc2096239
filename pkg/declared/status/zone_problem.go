package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// This file says why a zone, or an RRset of it, is not on its servers. A server is "dns-primary-0-0", a place without DNS servers
// "DNSProvider etcd". What a server answered is quoted.

// NoHosts says why no host serves a zone. Which instances other namespaces have, it does not say.
func NoHosts(zone *v1beta1.DNSZone) Verdict {
	var why []string
	for _, ref := range []string{zone.Spec.ClusterRef, zone.Spec.ClusterProviderRef} {
		if ref != "" {
			why = append(why, fmt.Sprintf("cluster %q has no instances", ref))
		}
	}
	if len(zone.Spec.Bind9InstancesFrom) > 0 {
		why = append(why, noneSelected(zone))
	}
	if len(why) == 0 {
		why = []string{"it has neither clusterRef nor bind9InstancesFrom nor providerRefs"}
	}
	return False(NoPrimaryInstances, "no instance serves this zone: "+strings.Join(why, "; "))
}

func noneSelected(zone *v1beta1.DNSZone) string {
	if listed := zone.Annotations[v1beta1.AllowInstanceNamespacesAnnotation]; listed != "" {
		return fmt.Sprintf("no instance of namespace %s matches bind9InstancesFrom, and none of those that the annotation %s lists (%s) matches and lists this namespace in its annotation %s",
			zone.Namespace, v1beta1.AllowInstanceNamespacesAnnotation, listed, v1beta1.AllowZoneNamespacesAnnotation)
	}
	return fmt.Sprintf("no instance of namespace %s matches bind9InstancesFrom; one of another namespace needs the annotation %s here, with its namespace, and %s itself, with %s",
		zone.Namespace, v1beta1.AllowInstanceNamespacesAnnotation, v1beta1.AllowZoneNamespacesAnnotation, zone.Namespace)
}

// NoPrimary is about a zone whose hosts are all secondaries: some instances, or providers if there are none.
func NoPrimary(instances []string) Verdict {
	if len(instances) == 0 {
		return False(NoPrimaryInstances, "the zone's providers are secondaries only: set clusterRef or bind9InstancesFrom, for a primary that they transfer it from")
	}
	return False(NoPrimaryInstances, "none of the zone's instances is a primary: "+strings.Join(instances, ", "))
}

// PrimaryWithoutPods is about a zone whose primary instance is scaled to none.
func PrimaryWithoutPods(instance string) Verdict {
	return False(NoPrimaryInstances, fmt.Sprintf("primary %s has no pods: its spec.replicas is 0", instance))
}

// NoPrimaryYet is about a zone of which no primary has an address yet.
func NoPrimaryYet(err error) Verdict {
	return False(PrimaryFailed, fmt.Sprintf("no primary can be asked yet: %v", err))
}

// PrimariesFailed is about a zone that some of all primaries could not be brought to, the worst of them with its error, which a remedy
// may follow.
func PrimariesFailed(failed, all int, worst string, err error, remedy string) Verdict {
	return False(PrimaryFailed, fmt.Sprintf("%d of %d primaries cannot be programmed; %s: %v%s", failed, all, worst, err, remedy))
}

// ProviderFailed is about a zone that could not be brought to a provider that is no DNS server.
func ProviderFailed(provider string, err error) Verdict {
	return False(PrimaryFailed, fmt.Sprintf("DNSProvider %s cannot be programmed: %v", provider, err))
}

// DuplicateOf is about a zone that another one keeps from its servers, which is named if it is of the same namespace.
func DuplicateOf(first *v1beta1.DNSZone, namespace string) Verdict {
	if first.Namespace != namespace {
		return False(DuplicateZone, "a DNSZone of another namespace has this name on the same servers and came first: "+
			"choose other instances with clusterRef or bind9InstancesFrom")
	}
	return False(DuplicateZone, fmt.Sprintf(
		"DNSZone %s/%s has this name on the same servers and came first: add the records to that zone, or choose other instances with clusterRef or bind9InstancesFrom",
		first.Namespace, first.Name))
}

// BelowOthers is about a zone below one of another namespace that does not delegate its name.
func BelowOthers(name string) Verdict {
	return False(NotPermitted, fmt.Sprintf(
		"another namespace has a zone above %s on the same servers: ask its owner for an NSRecord at %s, or those who run the servers for a ZoneGrant; "+
			"servers of your own need neither", name, name))
}

// IsPublicSuffix is about a zone of a public suffix on servers of others.
func IsPublicSuffix(name string) Verdict {
	return False(NotPermitted, fmt.Sprintf("%s is a public suffix, and the servers are not this namespace's: "+
		"ask those who run them for a ZoneGrant, or use servers of your own", name))
}

// NotGranted is about a zone whose name needs a ZoneGrant.
func NotGranted(namespace, name string) Verdict {
	return False(NotPermitted, fmt.Sprintf("no ZoneGrant lets namespace %s have %s on these servers: "+
		"ask those who run them for one, or use servers of your own", namespace, name))
}

// OnlyWatched is about an RRset of a paused zone that a server does not serve as declared.
func OnlyWatched(server string, key rrset.Key) Verdict {
	return False(Paused, fmt.Sprintf("%s does not serve %s as declared, and the zone is paused: it is only watched", server, key))
}

// CannotHold is about an RRset that a server cannot hold, for a reason of its kind.
func CannotHold(server, reason string) Verdict { return False(Unsupported, server+": "+reason) }

// RefusedBy is about an RRset that a server refused.
func RefusedBy(server string, err error) Verdict {
	return False(ReconcileFailed, fmt.Sprintf("%s: %v", server, err))
}

// ChangedByOthers is about an RRset that somebody else changes after each update of a pass.
func ChangedByOthers(server string, key rrset.Key) Verdict {
	return False(ReconcileFailed, fmt.Sprintf("%s does not serve %s as declared: somebody else changes it after each update", server, key))
}

// NotServed is about an RRset that a server has taken and does not serve.
func NotServed(server string, key rrset.Key) Verdict {
	return False(ReconcileFailed, fmt.Sprintf("%s took the update without an error and does not serve %s as declared", server, key))
}

// InTheWayOf is about an RRset beside which a server holds foreign data of the same name that excludes it, such as a CNAME.
func InTheWayOf(server string, key rrset.Key, foreign []rrset.Key) Verdict {
	types := make([]string, len(foreign))
	for i, f := range foreign {
		types[i] = rrset.TypeName(f.Type)
	}
	return False(Conflict, fmt.Sprintf("%s holds %s data at %s that no object declares and that cannot stand beside %s; remove it or rename the record",
		server, strings.Join(types, ", "), key.Name, rrset.TypeName(key.Type)))
}

// NotPublishable is about an RRset that another owner's data excludes, or that can have no marks of its owner.
func NotPublishable(server string, key rrset.Key, why string) Verdict {
	return False(Conflict, fmt.Sprintf("%s cannot have %s: %s", server, key, why))
}

// HiddenBy is about an RRset that a server holds and does not answer with. What hides it is foreign data above it, or with the zero type
// another zone of the server.
func HiddenBy(server string, key, by rrset.Key) Verdict {
	why := fmt.Sprintf("%s holds %s data at %s that no object declares and that hides it; remove that or rename the record", server, rrset.TypeName(by.Type), by.Name)
	if by.Type == 0 {
		why = fmt.Sprintf("%s answers from zone %s, which it serves as well; declare the data there", server, by.Name)
	}
	return False(Shadowed, fmt.Sprintf("%s is not what resolvers get: %s", key, why))
}

// Contest is what is known of an RRset that somebody else overwrites again and again.
type Contest struct {
	Server string
	Key    rrset.Key
	// Seen are the values that the server had last instead of Declared. It has them now unless Standing.
	Seen, Declared []string
	Standing       bool
	// Count is how often it was overwritten since First, Next when it is corrected again.
	Count       int
	First, Next time.Time
}

// Message says who overwrites what as far as that is known: DNS does not tell who it is. Values that nobody declares come first.
func (c Contest) Message() string {
	const clock = "2006-01-02 15:04:05 UTC"
	seen := "no data"
	if len(c.Seen) > 0 {
		isDeclared := func(value string) bool { return slices.Contains(c.Declared, value) }
		undeclared := slices.DeleteFunc(slices.Clone(c.Seen), isDeclared)
		declared := slices.DeleteFunc(slices.Clone(c.Seen), func(value string) bool { return !isDeclared(value) })
		seen = JoinSome(append(undeclared, declared...), Few, ", ")
	}
	what := fmt.Sprintf("somebody else has overwritten %s on %s %d times since %s, the last time with %s (who is not known here: DNS does not tell; see the server's log)",
		c.Key, c.Server, c.Count, c.First.UTC().Format(clock), seen)
	if c.Standing {
		return what + "; at present it is as declared"
	}
	return what + "; it is corrected again after " + c.Next.UTC().Format(clock)
}

// HeldBack is about an RRset whose change the guard of a zone holds back.
func HeldBack(zone string) Verdict {
	return False(ReasonHeld, "the guard of DNSZone "+zone+" holds this change back until its plan is confirmed")
}

// GuardHolds is about a zone whose guard holds a plan back: how many RRsets would be removed, how many would lose values, and some of them.
func GuardHolds(zone *v1beta1.DNSZone, plan string, removed, changed int, rrsets []string) Verdict {
	return False(ReasonHeld, fmt.Sprintf("RRsets that would be removed: %d, that would lose values: %d (%s); none of that is sent until somebody confirms this plan: %s",
		removed, changed, JoinSome(rrsets, Few, ", "), ConfirmCommand(zone, plan)))
}
