package bindcar

import "sync"

// sharedMemory is what lists that are being decoded may take. Whoever gets nothing fails, and does not wait for others. The sidecars of one
// namespace get three quarters at most: lists that never end keep nobody else's from being read. It is safe for concurrent use.
type sharedMemory struct {
	mu   sync.Mutex
	used int64
	of   map[string]int64 // by namespace
}

// lists is the memory of all lists.
var lists = &sharedMemory{of: map[string]int64{}}

// take reports whether a namespace gets so many bytes.
func (m *sharedMemory) take(namespace string, bytes int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+bytes > maxListsMemory || m.of[namespace]+bytes > maxListsMemory/4*3 {
		return false
	}
	m.used += bytes
	m.of[namespace] += bytes
	return true
}

// giveBack gives back what take has given.
func (m *sharedMemory) giveBack(namespace string, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= bytes
	if m.of[namespace] -= bytes; m.of[namespace] == 0 {
		delete(m.of, namespace)
	}
}

// isUnused reports whether all was given back.
func (m *sharedMemory) isUnused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used == 0 && len(m.of) == 0
}
