package plugin

import (
	"cmp"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// statusKey names a SyncStatus.
type statusKey struct{ namespace, name string }

// statusSet is what is known of some objects.
type statusSet map[statusKey]*v1alpha1.SyncStatus

func keyOf(s *v1alpha1.SyncStatus) statusKey { return statusKey{s.Namespace, s.Name} }

func (w statusSet) put(s *v1alpha1.SyncStatus) { w[keyOf(s)] = s }

// applyEvent updates the set and reports whether that changed it: an object that two queries select has two events.
func (w statusSet) applyEvent(e watchEvent) (news bool) {
	switch {
	case e.current != nil:
		before := w[keyOf(e.current)]
		w.put(e.current)
		return before == nil || before.ResourceVersion != e.current.ResourceVersion
	case e.deleted != nil:
		_, news = w[keyOf(e.deleted)]
		delete(w, keyOf(e.deleted))
	}
	return news
}

// sortedItems sorts the objects by namespace and name.
func (w statusSet) sortedItems() []v1alpha1.SyncStatus {
	out := make([]v1alpha1.SyncStatus, 0, len(w))
	for _, s := range w {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func notInSync(items []v1alpha1.SyncStatus) []v1alpha1.SyncStatus {
	var out []v1alpha1.SyncStatus
	for _, s := range items {
		if !s.Status.InSync {
			out = append(out, s)
		}
	}
	return out
}
