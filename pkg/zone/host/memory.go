package host

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Memory has what hosts of one zone know from one pass to the next. The zero value is empty. It can be lost at any time.
type Memory struct{ kept sync.Map }

// keptOf is the key of what a host keeps as a T.
type keptOf[T any] struct{ id types.NamespacedName }

func (k keptOf[T]) hostID() types.NamespacedName { return k.id }

// KeepOnly drops what other hosts know than some, by ID: a DNSProvider may have had any number of addresses.
func (m *Memory) KeepOnly(hosts sets.Set[types.NamespacedName]) {
	m.kept.Range(func(key, _ any) bool {
		if of, ok := key.(interface{ hostID() types.NamespacedName }); ok && !hosts.Has(of.hostID()) {
			m.kept.Delete(key)
		}
		return true
	})
}

// Recall is what a host keeps as a T; at first the zero value.
func Recall[T any](m *Memory, id types.NamespacedName) *T {
	known, ok := m.kept.Load(keptOf[T]{id})
	if !ok {
		known, _ = m.kept.LoadOrStore(keptOf[T]{id}, new(T))
	}
	return known.(*T)
}
