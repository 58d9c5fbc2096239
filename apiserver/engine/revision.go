package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

// replicaBits is the width of the replica's number at the end of a revision.
const replicaBits = 10

// clocksApart is by how much a clock must be ahead for its revisions to be refused.
const clocksApart = time.Minute

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

// current is a revision of now: not older than any handed out, by whichever replica as far as clocks agree, and older than
// all to come.
func (r *revisions) current() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.clock(), r.last)
	return r.last
}

// mine tells whether this replica handed the revision out.
func (r *revisions) mine(rev uint64) bool { return rev&(1<<replicaBits-1) == r.replica }

// fromFuture tells whether no replica can have handed a revision out yet.
func (r *revisions) fromFuture(rev uint64) bool { return timeOf(rev).After(r.now().Add(clocksApart)) }

func timeOf(rev uint64) time.Time { return time.UnixMicro(int64(rev >> replicaBits)) } //nolint:gosec // 54 bits

func formatRevision(rev uint64) string { return strconv.FormatUint(rev, 10) }

func parseRevision(s string) (uint64, error) {
	rev, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not one of this API's: %w", s, err)
	}
	return rev, nil
}

// CheckResourceVersion tells whether an answer about the present is one that a reader may expect who names a revision that
// it must not be older than. "" and "0" name none. Errors are API errors.
func (e *Engine) CheckResourceVersion(resourceVersion string) error {
	if resourceVersion == "" {
		return nil
	}
	rev, err := parseRevision(resourceVersion)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if e.revisions.fromFuture(rev) {
		return storage.NewTooLargeResourceVersionError(rev, e.revisions.current(), 1)
	}
	return nil
}
