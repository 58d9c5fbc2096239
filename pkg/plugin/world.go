package plugin

import (
	"cmp"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// key names a SyncStatus.
type key struct{ namespace, name string }

// world is what is known of some objects.
type world map[key]*v1alpha1.SyncStatus

func keyOf(s *v1alpha1.SyncStatus) key { return key{s.Namespace, s.Name} }

func (w world) put(s *v1alpha1.SyncStatus) { w[keyOf(s)] = s }

// apply takes in what an event tells, and tells whether that is news: an object that two queries select is told of twice.
func (w world) apply(e event) (news bool) {
	switch {
	case e.is != nil:
		before := w[keyOf(e.is)]
		w.put(e.is)
		return before == nil || before.ResourceVersion != e.is.ResourceVersion
	case e.gone != nil:
		_, news = w[keyOf(e.gone)]
		delete(w, keyOf(e.gone))
	}
	return news
}

// items are the objects by namespace and name.
func (w world) items() []v1alpha1.SyncStatus {
	out := make([]v1alpha1.SyncStatus, 0, len(w))
	for _, s := range w {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// behind are those of some objects that are not in step.
func behind(items []v1alpha1.SyncStatus) []v1alpha1.SyncStatus {
	var out []v1alpha1.SyncStatus
	for _, s := range items {
		if !s.Status.InSync {
			out = append(out, s)
		}
	}
	return out
}
