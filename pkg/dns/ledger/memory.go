package ledger

import "sync"

// maxRemembered is how many names a memory has: comparisons are of one name after the other, several at a time.
const maxRemembered = 16

// memory is what a View has found at the names that it was asked about last: whoever writes to the zone decides how much there is to read. A
// nil memory remembers nothing.
type memory struct {
	mu      sync.Mutex
	ledgers map[string]Ledger
	names   map[string]nameView
}

func (m *memory) ledgerOf(name string, read func(string) Ledger) Ledger {
	if m == nil {
		return read(name)
	}
	return recall(&m.mu, &m.ledgers, name, read)
}

func (m *memory) look(name string, read func(string) nameView) nameView {
	if m == nil {
		return read(name)
	}
	return recall(&m.mu, &m.names, name, read)
}

// recall returns what is known of a name, or reads it without holding the lock.
func recall[T any](mu *sync.Mutex, known *map[string]T, name string, read func(string) T) T {
	mu.Lock()
	found, ok := (*known)[name]
	mu.Unlock()
	if ok {
		return found
	}
	found = read(name)
	mu.Lock()
	defer mu.Unlock()
	if *known == nil || len(*known) >= maxRemembered {
		*known = map[string]T{}
	}
	(*known)[name] = found
	return found
}
