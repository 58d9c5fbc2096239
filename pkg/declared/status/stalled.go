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
	setWhile(failed, conditions, Stalled, True(why.Reason, why.Message), generation, now)
}

// setWhile sets a condition that is there only while it holds.
func setWhile(holds bool, conditions *[]metav1.Condition, kind string, verdict Verdict, generation int64, now time.Time) {
	if holds {
		Set(conditions, kind, verdict, generation, now)
	} else {
		meta.RemoveStatusCondition(conditions, kind)
	}
}
