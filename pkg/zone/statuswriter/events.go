package statuswriter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// Reasons of the Kubernetes Events on records and DNSEndpoints, and their action.
const (
	RecordProgrammed = "RecordProgrammed"
	RecordFailed     = "RecordFailed"
	ValueRemoved     = "ValueRemoved"
	programAction    = "Program"
)

// eventRecorder makes Kubernetes Events. There may be fewer than there are transitions: the statuses have all of them.
type eventRecorder struct {
	recorder         events.EventRecorder
	normal, warnings *apply.EventLimit
	// removals have a limit of their own: whoever may update a zone decides how many there are.
	transitions, removals *apply.Transitions
}

func newEventRecorder(r events.EventRecorder, scheme *runtime.Scheme) *eventRecorder {
	return &eventRecorder{
		recorder: r, normal: apply.NewEventLimit(10, 100), warnings: apply.NewEventLimit(50, 500),
		transitions: apply.NewTransitions(r, scheme), removals: apply.NewTransitions(r, scheme),
	}
}

// recordTransition makes the Event of a status that was written, if it is a transition.
func (a *eventRecorder) recordTransition(o client.Object, prev, next []metav1.Condition) {
	kind, reason, note := transitionEvent(prev, next)
	if kind == "" || a.recorder == nil {
		return
	}
	limit := a.normal
	if kind == corev1.EventTypeWarning {
		limit = a.warnings
	}
	if limit.Take(o.GetNamespace()) {
		a.recorder.Eventf(o, nil, kind, reason, programAction, "%s", note)
	}
}

// recordZone makes the Events of a zone whose status was written.
func (a *eventRecorder) recordZone(zone *v1beta1.DNSZone, prev, next v1beta1.DNSZoneStatus) {
	a.transitions.Record(zone, zoneSummary(prev), zoneSummary(next))
}

func zoneSummary(s v1beta1.DNSZoneStatus) apply.Summary {
	return apply.Summary{Conditions: s.Conditions, FailureReason: s.FailureReason, FailureMessage: s.FailureMessage}
}

// recordNameServers makes the Event of a pass that has published other addresses of the zone's name servers.
func (a *eventRecorder) recordNameServers(e SyncCompleted) {
	if e.NameServers != "" {
		a.transitions.Emit(e.Zone, corev1.EventTypeNormal, apply.NameServersChanged, "the addresses of Services have changed: "+e.NameServers)
	}
}

// recordDrift makes the Event of a pass that corrected what somebody else had changed. Two programs that write the same data would make
// one with each pass: without the zone's version, those that follow count in the first.
func (a *eventRecorder) recordDrift(e SyncCompleted) {
	if e.Drift > 0 {
		zone := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: source.ZoneKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Zone.Namespace, Name: e.Zone.Name, UID: e.Zone.UID},
		}
		a.transitions.EmitSeries(zone, corev1.EventTypeWarning, apply.DriftCorrected,
			fmt.Sprintf("corrected on the servers what somebody else had changed there; RRsets: %d", e.Drift))
	}
	a.recordRemoved(e)
}

const (
	// maxRemoved bounds the Events of one pass about values of somebody else.
	maxRemoved = 10
	// maxRemovedText bounds the values that an Event quotes.
	maxRemovedText = 200
)

// recordRemoved makes an Event on each object that declares an RRset from which values of somebody else were taken. It counts those that
// follow about the same values.
func (a *eventRecorder) recordRemoved(e SyncCompleted) {
	told := map[source.ObjectKey]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(e.Removed), rrset.Key.Compare) {
		removed := strings.Join(slices.Compact(slices.Sorted(slices.Values(e.Removed[key]))), ", ")
		if len(removed) > maxRemovedText {
			removed = strings.ToValidUTF8(removed[:maxRemovedText], "") + "..."
		}
		set, _ := e.Desired.RRsets.Get(key)
		for _, owner := range slices.Concat(set.Owners...) {
			if removed == "" || owner.Kind == source.ZoneKind || told[owner.Key()] || len(told) == maxRemoved {
				continue
			}
			told[owner.Key()] = true
			a.removals.Emit(&metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind},
				ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name, UID: owner.UID},
			}, corev1.EventTypeWarning, ValueRemoved, fmt.Sprintf("removed from %s: %s, which somebody else had added on a server; a name and type that "+
				"objects declare is theirs alone. To have both, declare that value as well, or write it to a name that no object declares", key, removed))
		}
	}
}

// transitionEvent is the Event that a change of conditions is worth; its kind is empty when it is worth none. A generation of a spec has
// one Event for being programmed, and one for each reason for which it is not.
func transitionEvent(prev, next []metav1.Condition) (kind, reason, note string) {
	before, after := meta.FindStatusCondition(prev, status.Programmed), meta.FindStatusCondition(next, status.Programmed)
	if after == nil || (before != nil && before.Status == after.Status && before.ObservedGeneration == after.ObservedGeneration &&
		(after.Status == metav1.ConditionTrue || before.Reason == after.Reason)) {
		return "", "", ""
	}
	switch after.Status {
	case metav1.ConditionTrue:
		return corev1.EventTypeNormal, RecordProgrammed, status.TruncateMessage(after.Message)
	case metav1.ConditionFalse:
		return corev1.EventTypeWarning, RecordFailed, status.TruncateMessage(after.Reason + ": " + after.Message)
	default:
		return "", "", ""
	}
}
