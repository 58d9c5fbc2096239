package source

import (
	"cmp"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// aged is a record with the time of its creation, so that sorting looks at the object only when times are equal.
type aged struct {
	created int64
	v1beta1.Record
}

// oldestFirst sorts the records that are there to stay by age, then namespace, name, kind and UID.
func oldestFirst(records []v1beta1.Record) []aged {
	all := make([]aged, 0, len(records))
	for _, r := range records {
		if r == nil || r.GetDeletionTimestamp() != nil {
			continue
		}
		created := int64(math.MaxInt64) // About to be created: the youngest.
		if t := r.GetCreationTimestamp(); !t.IsZero() {
			created = t.UnixNano()
		}
		all = append(all, aged{created, r})
	}
	slices.SortFunc(all, compareAged)
	return all
}

func compareAged(a, b aged) int {
	if a.created != b.created {
		return cmp.Compare(a.created, b.created)
	}
	if c := cmp.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
		return c
	}
	if c := cmp.Compare(a.GetName(), b.GetName()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(v1beta1.KindOf(a.Record).Kind, v1beta1.KindOf(b.Record).Kind), cmp.Compare(a.GetUID(), b.GetUID()))
}

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
