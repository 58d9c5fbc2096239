package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// MaxZoneRecords bounds status.records of a zone: an object in etcd must stay below 1.5 MiB, the size of some 10,000
// references. The count is always of all.
const MaxZoneRecords = 1000

// ZoneFacts is what one pass found about a zone.
type ZoneFacts struct {
	Generation int64
	// Serial that the primaries answered with. Unless SerialKnown, the last known value remains.
	Serial      uint32
	SerialKnown bool
	// Ready counts the programmed records, Unready the others. Records are at most MaxZoneRecords of the programmed
	// ones, in a stable order.
	Ready, Unready int
	// Elsewhere counts the endpoints of types that are not published here: they are for other programs.
	Elsewhere int
	Records   []v1beta1.RecordReference
	// Instances of the zone, in a stable order, without times.
	Instances []v1beta1.ZoneInstance
	// Providers of the zone, in a stable order, without times.
	Providers []v1beta1.ZoneProvider
	// Programmed says whether the zone as a whole is programmed, and if not, why.
	Programmed Verdict
	// Failure is what keeps the zone or a part of it from being programmed if only a person can end that; the zero value if there is none.
	Failure Verdict
	// Servers and Current count the zone's servers and those that hold the zone's serial.
	Servers, Current int
	// Untransferred is about a secondary that does not transfer the zone although it was notified; empty if there is none.
	Untransferred string
	// Paused is true if the zone is only watched; Pending then counts the RRsets that would change.
	Paused  bool
	Pending int
	// HeldPlan names what the zone's guard holds back, and Guarded says so; empty and the zero value if that is nothing.
	HeldPlan string
	Guarded  Verdict
	// Foreign counts the RRsets that no object declares; ForeignSample has some of them, sorted.
	Foreign       int
	ForeignSample []string
	// DNSSEC is how the zone is signed; nil if it is not. Unless DNSSECKnown, the last known value remains.
	DNSSEC      *v1beta1.DNSSECStatus
	DNSSECKnown bool
	// Delegated says how far the zones above have the zone's DS records; the zero value if there is none that is declared here.
	Delegated Verdict
	// Arrivals are since when the zone has been on its hosts. They are for a status without any: others are changed before the zone
	// comes to a host or leaves one.
	Arrivals *v1beta1.ZoneArrivals
	// Contested says, for each RRset that somebody else overwrites again and again, on which server and with what.
	Contested []string
	// Waiting is why the zone's name servers stay as they are; empty if they are as declared.
	Waiting string
	// Remark is further information, which becomes part of Ready's message.
	Remark string
	// Timeout is how long an instance may be without the zone before the zone is overdue; ZoneTimeout if 0.
	Timeout time.Duration
}

// Zone computes the status of a zone. Times are those of the last change, so that an unchanged zone keeps its status.
func Zone(prev v1beta1.DNSZoneStatus, f ZoneFacts, now time.Time) v1beta1.DNSZoneStatus {
	next := *prev.DeepCopy()
	dropClaims(&next.Conditions, Progressing, Degraded)
	next.ObservedGeneration = f.Generation
	next.FailureReason, next.FailureMessage = f.Failure.Reason, TruncateMessage(f.Failure.Message)
	if f.SerialKnown {
		next.Serial = new(int64(f.Serial))
	}
	if !f.isUnknown() {
		next.RecordsCount = int32(f.Ready) //nolint:gosec // far below 2^31
		next.Records = f.Records[:min(len(f.Records), MaxZoneRecords)]
		next.ForeignRRsetsCount, next.ForeignRRsets = int32(f.Foreign), f.ForeignSample //nolint:gosec // far below 2^31
		next.HeldPlan = f.HeldPlan
		if f.DNSSECKnown {
			next.DNSSEC = f.DNSSEC
			setWhile(f.Delegated.Reason != "", &next.Conditions, Delegated, f.Delegated, f.Generation, now)
		}
	}
	if len(f.Instances)+len(f.Providers) > 0 || !f.isUnknown() {
		next.Bind9InstancesCount = int32(len(f.Instances)) //nolint:gosec // far below 2^31
		next.Bind9Instances, next.Providers = f.Instances, f.Providers
	}
	if next.Arrivals == nil {
		next.Arrivals = f.Arrivals
	}
	keepTimes(&next, prev, now)
	v := ZoneVerdictsOf(f)
	if late := overdueHost(next, cmp.Or(f.Timeout, ZoneTimeout), now); late != "" && !f.Paused {
		v.markOverdue(late)
		if f.Failure.Reason == "" {
			next.FailureReason, next.FailureMessage = ProgressDeadlineExceeded, late
		}
	}
	Set(&next.Conditions, Ready, v.Ready, f.Generation, now)
	Set(&next.Conditions, Progressing, v.Progressing, f.Generation, now)
	Set(&next.Conditions, Degraded, v.Degraded, f.Generation, now)
	if !f.isUnknown() {
		setWhile(len(f.Contested) > 0, &next.Conditions, Contested, True(Overwritten, JoinSome(f.Contested, Few, "; ")), f.Generation, now)
	}
	setStalled(&next.Conditions, next.FailureReason != "", False(next.FailureReason, next.FailureMessage), f.Generation, now)
	return next
}

// isUnknown reports whether nobody knows what the zone's primaries hold, because they were not asked, or not all answered. Then the last
// known values remain.
func (f ZoneFacts) isUnknown() bool {
	switch f.Programmed.Reason {
	case PrimaryFailed, ReconcileFailed, AddressPending:
		return !f.Programmed.Holds()
	case NoPrimaryInstances:
		return len(f.Instances)+len(f.Providers) > 0
	}
	return false
}

// ZoneVerdicts are the conditions of a zone.
type ZoneVerdicts struct{ Ready, Progressing, Degraded Verdict }

// Flipped reports whether a condition's status differs from that in o.
func (v ZoneVerdicts) Flipped(o ZoneVerdicts) bool {
	return v.Ready.Status != o.Ready.Status || v.Progressing.Status != o.Progressing.Status || v.Degraded.Status != o.Degraded.Status
}

// ZoneVerdictsOf are the conditions of a zone. It is ready once its primaries hold what is declared, progressing while secondaries still
// have to transfer it, and degraded if records cannot be programmed.
func ZoneVerdictsOf(f ZoneFacts) ZoneVerdicts {
	v := zoneVerdicts(f)
	if f.Remark != "" {
		v.Ready.Message += "; " + f.Remark
	}
	return v
}

func zoneVerdicts(f ZoneFacts) ZoneVerdicts {
	served := fmt.Sprintf("%d of %d servers hold serial %d, %d of %d records are programmed",
		f.Current, f.Servers, f.Serial, f.Ready, f.Ready+f.Unready)
	if f.Elsewhere > 0 {
		served += fmt.Sprintf("; %s of types that are not published here", CountOf(f.Elsewhere, "endpoint"))
	}
	switch {
	case !f.Programmed.Holds():
		return ZoneVerdicts{f.Programmed, False(f.Programmed.Reason, f.Programmed.Message), True(f.Programmed.Reason, f.Programmed.Message)}
	case f.Servers == 0:
		none := False(NoPrimaryInstances, "the zone has no server: its instances have no pods, or are not known yet")
		return ZoneVerdicts{none, none, True(none.Reason, none.Message)}
	case f.Paused && f.Pending > 0:
		would := fmt.Sprintf("paused: %s would change", CountOf(f.Pending, "RRset"))
		return ZoneVerdicts{False(Paused, would), False(Paused, would), True(Paused, would)}
	case f.Paused:
		return ZoneVerdicts{True(Paused, "paused: no RRset would change; "+served), False(Paused, served), False(Paused, served)}
	case f.Waiting != "":
		pending := f.Waiting + "; until then the name servers and their addresses stay as they are; " + served
		return ZoneVerdicts{False(AddressPending, pending), False(AddressPending, pending), True(AddressPending, pending)}
	case f.HeldPlan != "":
		held := f.Guarded.Message + "; " + served
		return ZoneVerdicts{False(ReasonHeld, held), False(ReasonHeld, held), True(ReasonHeld, held)}
	case f.Unready > 0:
		return ZoneVerdicts{False(PartialReconciliation, served), False(PartialReconciliation, served), True(PartialReconciliation, served)}
	case f.Untransferred != "":
		return ZoneVerdicts{True(ReconcileSucceeded, served), False(ZoneTransferFailed, f.Untransferred), True(ZoneTransferFailed, f.Untransferred)}
	case f.Current < f.Servers:
		return ZoneVerdicts{True(ReconcileSucceeded, served), True(ReasonProgressing, served), True(ReconcileDegraded, served)}
	default:
		return ZoneVerdicts{True(ReconcileSucceeded, served), False(ZoneTransferComplete, served), False(ReconcileSucceeded, served)}
	}
}

// keepTimes sets since when each instance and each provider has the zone, or has not.
func keepTimes(next *v1beta1.DNSZoneStatus, prev v1beta1.DNSZoneStatus, now time.Time) {
	at, sameSpec := metav1.NewTime(now.Truncate(time.Second)), next.ObservedGeneration == prev.ObservedGeneration
	type key struct{ namespace, name string }
	instances, providers := map[key]v1beta1.ZoneInstance{}, map[string]v1beta1.ZoneProvider{}
	for _, i := range prev.Bind9Instances {
		instances[key{i.Namespace, i.Name}] = i
	}
	for _, p := range prev.Providers {
		providers[p.Name] = p
	}
	for n := range next.Bind9Instances {
		i := &next.Bind9Instances[n]
		old := instances[key{i.Namespace, i.Name}]
		i.LastReconciledAt = sinceWhen(old.Status, old.LastReconciledAt, i.Status, sameSpec, &at)
	}
	for n := range next.Providers {
		p := &next.Providers[n]
		old := providers[p.Name]
		p.LastReconciledAt = sinceWhen(old.Status, old.LastReconciledAt, p.Status, sameSpec, &at)
	}
}

// sinceWhen is since when a host has the zone, or has not: since before if that is unchanged, else since now. If the host has it not, a
// change of the zone's specification resets the time.
func sinceWhen(before v1beta1.ZoneInstanceStatus, since *metav1.Time, is v1beta1.ZoneInstanceStatus, sameSpec bool, now *metav1.Time) *metav1.Time {
	configured := is == v1beta1.ZoneConfigured
	if since != nil && configured == (before == v1beta1.ZoneConfigured) && (configured || sameSpec) {
		return since
	}
	return now
}

// overdueHost is a message about the first instance or provider that has been without the zone for too long; empty if there is none.
func overdueHost(zone v1beta1.DNSZoneStatus, timeout time.Duration, now time.Time) string {
	for _, p := range zone.Providers {
		if p.Status != v1beta1.ZoneConfigured && now.Sub(p.LastReconciledAt.Time) >= timeout {
			return fmt.Sprintf("DNSProvider %s has been without the zone for %s: %s", p.Name, timeout, p.Message)
		}
	}
	for _, i := range zone.Bind9Instances {
		if i.Status != v1beta1.ZoneConfigured && now.Sub(i.LastReconciledAt.Time) >= timeout {
			return fmt.Sprintf("instance %s/%s has been without the zone for %s: %s", i.Namespace, i.Name, timeout, i.Message)
		}
	}
	return ""
}

// markOverdue marks the zone as failed. A more specific reason why it is degraded remains.
func (v *ZoneVerdicts) markOverdue(why string) {
	v.Progressing = False(ProgressDeadlineExceeded, why)
	if !v.Degraded.Holds() || v.Degraded.Reason == ReconcileDegraded {
		v.Degraded = True(ProgressDeadlineExceeded, why)
	}
}

// HostState is how far a server has a zone, by whether it answers for it or the error, with a message if it has not.
func HostState(server string, hasZone bool, err error) (v1beta1.ZoneInstanceStatus, string) {
	switch {
	case err != nil:
		return v1beta1.ZoneFailed, server + ": " + err.Error()
	case !hasZone:
		return v1beta1.ZoneClaimed, server + " does not serve the zone yet"
	}
	return v1beta1.ZoneConfigured, ""
}

// AlsoSelected explains why a zone does not hold all that it selects: older zones have so many records, some of which are listed.
func AlsoSelected(count int, some, olderZones []string) string {
	if count > len(some) {
		some = append(some, "…")
	}
	objects, older := "1 record is", "an older zone, which has it"
	if count > 1 {
		objects, older = fmt.Sprintf("%d records are", count), "older zones, which have them"
	}
	if len(olderZones) > 0 {
		older += ": DNSZone " + JoinSome(olderZones, Few, ", ")
	}
	return fmt.Sprintf("%s also selected (%s) by %s", objects, strings.Join(some, ", "), older)
}

// AheadOfPrimaries says that a secondary has a later serial than its primaries, and what makes it transfer the zone again: serials
// only rise (RFC 1982 section 3.2).
func AheadOfPrimaries(serial, primaries uint32) string {
	return fmt.Sprintf("serial %d is ahead of the primaries' %d: no transfer will repair it until theirs is higher; set spec.soaRecord.serial of the DNSZone to %d",
		serial, primaries, rrset.AddSerial(serial, 1))
}

// ConfirmCommand is the command that confirms a plan that the guard of a zone holds back.
func ConfirmCommand(zone *v1beta1.DNSZone, plan string) string {
	return fmt.Sprintf("kubectl annotate --overwrite dnszone -n %s %s %s=%s", zone.Namespace, zone.Name, v1beta1.ConfirmAnnotation, plan)
}
