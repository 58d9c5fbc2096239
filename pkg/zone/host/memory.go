package host

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory has what hosts of one zone know from one pass to the next. The zero value is empty. It can be lost at any time.
type Memory struct{ kept sync.Map }

// keptOf is the key of what a host keeps as a T.
type keptOf[T any] struct{ id types.NamespacedName }

// Recall is what a host keeps as a T; at first the zero value.
func Recall[T any](m *Memory, id types.NamespacedName) *T {
	known, ok := m.kept.Load(keptOf[T]{id})
	if !ok {
		known, _ = m.kept.LoadOrStore(keptOf[T]{id}, new(T))
	}
	return known.(*T)
}
