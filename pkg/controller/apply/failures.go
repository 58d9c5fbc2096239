package apply

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxNote is how many bytes the note of an Event may have (events.k8s.io/v1).
const maxNote = 1024

// RecordFailure makes an Event of a failure that a person has to end, once its reason in an object's status has changed
// from before to after. Without a recorder it makes none.
func RecordFailure(recorder events.EventRecorder, o client.Object, before, after, message string) {
	if recorder != nil && after != "" && before != after {
		recorder.Eventf(o, nil, corev1.EventTypeWarning, after, "Reconcile", "%s", strings.ToValidUTF8(message[:min(len(message), maxNote)], ""))
	}
}
