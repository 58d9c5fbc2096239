package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// replicaBits is the width of the replica's number at the end of a revision.
const replicaBits = 10

// revisions hands out strictly increasing revisions, see the package comment.
type revisions struct {
	replica uint64
	now     func() time.Time

	mu   sync.Mutex
	last uint64
}

func newRevisions(now func() time.Time) *revisions {
	r := &revisions{replica: rand.Uint64N(1 << replicaBits), now: now} //nolint:gosec // not a secret
	r.last = r.clock()
	return r
}

func (r *revisions) clock() uint64 { return revisionAt(r.now()) | r.replica }

func revisionAt(t time.Time) uint64 { return uint64(t.UnixMicro()) << replicaBits } //nolint:gosec // after 1970

// next is a revision that nothing has had yet.
func (r *revisions) next() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.clock(), r.last+1<<replicaBits)
	return r.last
}

// current is the newest revision handed out.
func (r *revisions) current() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// mine tells whether this replica handed the revision out.
func (r *revisions) mine(rev uint64) bool { return rev&(1<<replicaBits-1) == r.replica }

func timeOf(rev uint64) time.Time { return time.UnixMicro(int64(rev >> replicaBits)) } //nolint:gosec // 54 bits

func formatRevision(rev uint64) string { return strconv.FormatUint(rev, 10) }

func parseRevision(s string) (uint64, error) {
	rev, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not one of this API's: %w", s, err)
	}
	return rev, nil
}
