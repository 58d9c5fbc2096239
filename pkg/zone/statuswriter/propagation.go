package statuswriter

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// maxBatches bounds what is kept of a zone whose servers do not follow. Further changes count with the last batch.
const maxBatches = 64

// propagation measures how long changes take from the watch event that reports them to the moment at which all servers of their
// zone are known to serve them. The changes that one pass takes are a batch: one measurement, from its earliest change.
type propagation struct {
	took prometheus.Histogram

	mu    sync.Mutex
	zones map[types.NamespacedName][]batch
}

// batch is what one pass took.
type batch struct {
	since time.Time
	// isMeasured is false when the changes are older than since, or may be: they count as on their way and not in the histogram.
	isMeasured bool
	// serial is the zone's after the batch was programmed on all primaries; it is not known before isProgrammed.
	serial       uint32
	isProgrammed bool
	// pending are the RRsets that the batch waits for, beside those that batches before it wait for; nil before a pass could ask the
	// primaries.
	pending map[rrset.Key]struct{}
	// hasChanges is true when a server had to be changed.
	hasChanges bool
}

// note takes an outcome into account.
func (p *propagation) note(e SyncCompleted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	zone := client.ObjectKeyFromObject(e.Zone)
	if !e.isOnItsWay() {
		delete(p.zones, zone)
		return
	}
	batches := addBatch(p.zones[zone], e)
	open := batches[:0]
	for _, b := range batches {
		switch {
		case !b.isProgrammed || !e.isServed(b.serial):
			open = append(open, b)
		case b.hasChanges && b.isMeasured:
			p.took.Observe(e.At.Sub(b.since).Seconds())
		}
	}
	if p.zones[zone] = open; len(open) == 0 {
		delete(p.zones, zone)
	}
}

// isOnItsWay reports whether changes of a zone reach its servers without anybody's help: no person has to act first, nobody has paused
// the zone, and there are servers.
func (e SyncCompleted) isOnItsWay() bool {
	return !e.Paused && e.Failure.Reason == "" && e.Programmed.Reason != status.NoPrimaryInstances
}

// addBatch adds what a pass took to the batches before it, and completes them with its outcome.
func addBatch(batches []batch, e SyncCompleted) []batch {
	if !e.Since.IsZero() || e.Rebuilt {
		next := batch{since: e.Since, isMeasured: !e.Rebuilt}
		if next.since.IsZero() {
			next.since = e.At.Add(-e.Took)
		}
		if len(batches) < maxBatches {
			batches = append(batches, next)
		} else {
			batches[len(batches)-1].isProgrammed = false
		}
	}
	isAwaited := map[rrset.Key]bool{}
	for i := range batches {
		b := &batches[i]
		if !b.isProgrammed {
			b.complete(e, isAwaited)
		}
		for key := range b.pending {
			isAwaited[key] = true
		}
	}
	return batches
}

// complete adds the outcome of a pass to a batch that is not programmed. isAwaited has what batches before it wait for: an RRset that a
// server refuses does not hold up what changes after it.
func (b *batch) complete(e SyncCompleted, isAwaited map[rrset.Key]bool) {
	b.hasChanges = b.hasChanges || e.Changes.HasChanges()
	if !e.Programmed.Holds() {
		return
	}
	if b.pending == nil {
		b.pending = map[rrset.Key]struct{}{}
		for key := range e.Unprogrammed {
			if !isAwaited[key] {
				b.pending[key] = struct{}{}
			}
		}
	}
	for key := range b.pending {
		if v, isStuck := e.Unprogrammed[key]; !isStuck || isDeclarers(v) {
			delete(b.pending, key)
		}
	}
	b.isProgrammed, b.serial = len(b.pending) == 0, e.Serial
}

// isDeclarers reports whether an RRset cannot be served as it is declared, so that whoever declares it has to change something.
func isDeclarers(v status.Verdict) bool {
	return v.Reason == status.Conflict || v.Reason == status.Shadowed || v.Reason == status.Unsupported
}

// isServed reports whether all servers and providers of the zone have it with a serial, or a later one. Where others write as well,
// serials are theirs.
func (e SyncCompleted) isServed(serial uint32) bool {
	lacks := func(s ServerOutcome) bool {
		return !s.Current && (s.Shared || !s.HasZone || rrset.SerialLess(s.Serial, serial))
	}
	return !slices.ContainsFunc(e.Servers, lacks) && !slices.ContainsFunc(e.Backends, func(b BackendOutcome) bool { return b.Err != nil })
}

// oldest is since when the oldest change has been on its way; zero when none is.
func (p *propagation) oldest() (since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, batches := range p.zones {
		for _, b := range batches {
			since = status.Earlier(since, b.since)
		}
	}
	return since
}

// forget drops a zone that is gone.
func (p *propagation) forget(zone types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.zones, zone)
}
