package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// replicaBits is the width of the end of a revision: the replica's number, and inexact.
	replicaBits = 11
	// inexact is set in the resourceVersion of a list that may have more than there was at the revision: of pages, as all have that of the
	// first one and the later ones are of the present, perhaps of another replica's; and of a list that changes have overtaken.
	inexact = 1
)

// maxClockSkew is by how much a clock must be ahead for its revisions to be refused.
const maxClockSkew = time.Minute

// revisionClock hands out strictly increasing revisions: the time in microseconds, with the replica's number in the lowest
// bits but one, so that a revision says which replica it is from, and those of different replicas compare by time.
type revisionClock struct {
	replica uint64
	now     func() time.Time

	mu   sync.Mutex
	last uint64
}

func newRevisionClock(now func() time.Time) *revisionClock {
	r := &revisionClock{replica: rand.Uint64N(1<<replicaBits) &^ inexact, now: now} //nolint:gosec // not a secret
	r.last = r.readClock()
	return r
}

func (r *revisionClock) readClock() uint64 { return revisionAt(r.now()) | r.replica }

func revisionAt(t time.Time) uint64 { return uint64(t.UnixMicro()) << replicaBits }

// nextRevision is one that nothing has had yet.
func (r *revisionClock) nextRevision() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.readClock(), r.last+1<<replicaBits)
	return r.last
}

// currentRevision is not older than any handed out, by whichever replica as far as clocks agree, and older than all to come.
func (r *revisionClock) currentRevision() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.readClock(), r.last)
	return r.last
}

// isOwn reports whether this replica handed the revision out.
func (r *revisionClock) isOwn(rev uint64) bool { return rev&(1<<replicaBits-1)&^inexact == r.replica }

func isInexact(rev uint64) bool { return rev&inexact != 0 }

// isFuture reports whether no replica can have handed a revision out yet. What this one has handed out stays, if its clock is set back.
func (r *revisionClock) isFuture(rev uint64) bool {
	return rev&^inexact > r.currentRevision() && timeOf(rev).After(r.now().Add(maxClockSkew))
}

func timeOf(rev uint64) time.Time { return time.UnixMicro(int64(rev >> replicaBits)) }

func formatRevision(rev uint64) string { return strconv.FormatUint(rev, 10) }

func parseRevision(s string) (uint64, error) {
	rev, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not one of this API's: %w", s, err)
	}
	return rev, nil
}

// CheckResourceVersion is an API error unless an answer about the present satisfies a reader who names a revision that it must not be
// older than. "" and "0" name none.
func (s *Store) CheckResourceVersion(resourceVersion string) error {
	if resourceVersion == "" {
		return nil
	}
	rev, err := parseRevision(resourceVersion)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if s.clock.isFuture(rev) {
		return storage.NewTooLargeResourceVersionError(rev, s.clock.currentRevision(), 1)
	}
	return nil
}
