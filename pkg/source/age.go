package source

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// compareAge puts the older first. An object without a timestamp is one that is about to be created: the youngest.
func compareAge(a, b metav1.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b.Time)
}
