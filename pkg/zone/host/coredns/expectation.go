package coredns

import (
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
)

// expectation is what a zone holds after an Apply if nobody else changes it, and what CoreDNS answers then, which is found out while the
// transactions are under way. It stands for nothing that was not read: what is read has to be the same, value by value.
type expectation struct {
	after   *snapshot
	content *content
	err     error
	// wait returns when the other fields are there.
	wait func()
}

// expect begins to find out what CoreDNS answers from a snapshot when ours are the wanted values.
func expect(s *snapshot, want []keyValue) *expectation {
	e := &expectation{}
	e.wait = parallel.Start(func() {
		e.after = s.after(want)
		e.content, e.err = newContent(e.after)
	})
	return e
}

// contentOf is what CoreDNS answers from what was read; e may be nil.
func (e *expectation) contentOf(read *snapshot) (*content, error) {
	if e != nil {
		if e.wait(); e.err == nil && e.after.hasValuesOf(read) {
			return e.content, nil
		}
	}
	return newContent(read)
}

// hasValuesOf compares keys and values, not revisions.
func (s *snapshot) hasValuesOf(o *snapshot) bool {
	return slices.EqualFunc(s.entries, o.entries, func(a, b entry) bool {
		return a.key == b.key && a.value == b.value && a.broken == b.broken
	})
}
