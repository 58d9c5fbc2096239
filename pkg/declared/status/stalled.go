package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stalled is True while a person has to act, and else not there. It is one of the conditions that tools know of every kind (kstatus): with
// it they report an object as failed, instead of waiting for it.
const Stalled = "Stalled"

// setStalled says whether a person has to act, and why.
func setStalled(conditions *[]metav1.Condition, failed bool, why Verdict, generation int64, now time.Time) {
	if failed {
		Set(conditions, Stalled, True(why.Reason, why.Message), generation, now)
	} else {
		meta.RemoveStatusCondition(conditions, Stalled)
	}
}
