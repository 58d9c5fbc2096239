package apply

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// Reasons of Events about zones, instances, clusters and providers; docs/reference/events.md has all. A failure that a person has
// to end has the reason in its object's status.
const (
	BecameReady    = "Ready"
	BecameUnready  = "NotReady"
	FailureEnded   = "FailureEnded"
	ServerLost     = "ServerLost"
	ServerBack     = "ServerBack"
	DriftCorrected = "DriftCorrected"
	KeyRotated     = "KeyRotated"
	// NameServersChanged is the reason of the Event about a zone whose name servers have other addresses.
	NameServersChanged = "NameServersChanged"
	// FieldsIgnored is the reason of the Event about an instance with fields that have no effect.
	FieldsIgnored = "FieldsIgnored"
	// ContestEnded is the reason of the Event about a zone that is Contested no more.
	ContestEnded = "ContestEnded"
)

// reconcileAction is the action of these Events.
const reconcileAction = "Reconcile"

// Summary is what Events are made from: the conditions of an object, and its failure, if only a person can end it.
type Summary struct {
	Conditions                    []metav1.Condition
	FailureReason, FailureMessage string
}

// Transitions makes Events of what changes about objects, at most 10 in a second after the first 100. There may be fewer
// than there are changes: the statuses have all of them.
type Transitions struct {
	recorder events.EventRecorder
	scheme   *runtime.Scheme
	limit    *EventLimit
}

// NewTransitions returns a Transitions that makes Events with a recorder; none with nil. The scheme has the kinds of the objects.
func NewTransitions(recorder events.EventRecorder, scheme *runtime.Scheme) *Transitions {
	return &Transitions{recorder: recorder, scheme: scheme, limit: NewEventLimit(10, 100)}
}

// Record makes the Events of a status that was written. A status that says the same in other words has none.
func (t *Transitions) Record(o client.Object, before, after Summary) {
	for _, n := range compareSummaries(before, after) {
		t.Emit(o, n.kind, n.reason, n.note)
	}
}

// Emit makes one Event of a kind, Normal or Warning. A nil Transitions makes none.
func (t *Transitions) Emit(o client.Object, kind, reason, note string) {
	if t != nil && t.recorder != nil {
		note = status.TruncateMessage(note)
		t.emit(o, RegardingNote(t.scheme, o, note), kind, reason, note)
	}
}

// EmitSeries makes an Event about whatever version of an object, or counts it in one that it made with this reason in the last minutes: the
// note of the first stands for all.
func (t *Transitions) EmitSeries(o *metav1.PartialObjectMetadata, kind, reason, note string) {
	if t != nil && t.recorder != nil {
		t.emit(o, o, kind, reason, status.TruncateMessage(note))
	}
}

func (t *Transitions) emit(o client.Object, regarding runtime.Object, kind, reason, note string) {
	if t.limit.Take(o.GetNamespace()) {
		t.recorder.Eventf(regarding, nil, kind, reason, reconcileAction, "%s", note)
	}
}

// RegardingNote is what an Event with a note is about: an object in its version, and a field path that stands for the note. client-go counts
// an Event in the one before if both have one reason and are about the same, whatever they say: a pod that is lost after another would not
// be named.
func RegardingNote(scheme *runtime.Scheme, o client.Object, note string) runtime.Object {
	ref, err := reference.GetReference(scheme, o)
	if err != nil {
		return o // The recorder reports it.
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(note))
	ref.FieldPath = fmt.Sprintf("note{%08x}", digest.Sum32())
	return ref
}

// notice is an Event that has yet to be made.
type notice struct{ kind, reason, note string }

// refusals are reasons of conditions that have an Event of their own, whatever the condition was before: what others refuse us, and a zone
// that a secondary does not get.
var refusals = []string{
	status.ZoneTransferFailed, status.TransferRefused, status.UpdateRefused, status.AuthenticationFailed, status.KeyUnusable, status.SecretUnusable,
}

// refusalOf is the first condition with the reason of a refusal; nil if there is none. Ready is the first condition of all.
func (s Summary) refusalOf() *metav1.Condition {
	for i, c := range s.Conditions {
		if slices.Contains(refusals, c.Reason) {
			return &s.Conditions[i]
		}
	}
	return nil
}

// compareRefusals makes the Events of refusals. The end of a refusal on which Ready depends is that the object is ready. Nothing is known
// about others while the object is not ready: a greater problem hides them.
func compareRefusals(before, after Summary) (all []notice) {
	was, is := before.refusalOf(), after.refusalOf()
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason):
		all = append(all, notice{corev1.EventTypeWarning, is.Reason, is.Message})
	case is == nil && was != nil && was.Type != status.Ready && meta.IsStatusConditionTrue(after.Conditions, status.Ready):
		all = append(all, notice{corev1.EventTypeNormal, FailureEnded, "no longer failed with " + was.Reason})
	}
	return all
}

// compareSummaries decides what is worth an Event. A failure, or a refusal, says more than that its object is not ready.
func compareSummaries(before, after Summary) (all []notice) {
	failed := after.FailureReason != "" && after.FailureReason != before.FailureReason
	switch {
	case failed:
		all = append(all, notice{corev1.EventTypeWarning, after.FailureReason, after.FailureMessage})
	case before.FailureReason != "" && after.FailureReason == "":
		all = append(all, notice{corev1.EventTypeNormal, FailureEnded, "no longer failed with " + before.FailureReason})
	}
	all = append(all, compareRefusals(before, after)...)
	was, is := meta.FindStatusCondition(before.Conditions, status.Contested), meta.FindStatusCondition(after.Conditions, status.Contested)
	switch {
	case is != nil && was == nil:
		all = append(all, notice{corev1.EventTypeWarning, status.Contested, is.Message})
	case is == nil && was != nil:
		all = append(all, notice{corev1.EventTypeNormal, ContestEnded, "nobody overwrites RRsets again and again any more"})
	}
	for _, c := range after.Conditions {
		was := meta.FindStatusCondition(before.Conditions, c.Type)
		wasTrue, isTrue := was != nil && was.Status == metav1.ConditionTrue, c.Status == metav1.ConditionTrue
		note := strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		switch isReady, isServer := c.Type == status.Ready, isServerCondition(c.Type); {
		case wasTrue == isTrue:
		case isReady && isTrue:
			all = append(all, notice{corev1.EventTypeNormal, BecameReady, note})
		case isReady && !failed && !slices.Contains(refusals, c.Reason):
			all = append(all, notice{corev1.EventTypeWarning, BecameUnready, note})
		case isServer && !isTrue:
			all = append(all, notice{corev1.EventTypeWarning, ServerLost, c.Type + ": " + note})
		case isServer && was != nil:
			all = append(all, notice{corev1.EventTypeNormal, ServerBack, c.Type + ": " + note})
		}
	}
	return all
}

// isServerCondition is true for conditions about a pod of an instance, or about the servers of a provider.
func isServerCondition(name string) bool {
	return name == status.Reachable || strings.HasPrefix(name, "Pod-")
}
