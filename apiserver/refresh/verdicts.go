package refresh

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// CurrentVerdict judges an object as it is in the Kubernetes cluster now, by answers from since or later; nil if it does not exist, and
// when ctx ends. Servers are asked and the verdict is evaluated and published while kube-apiserver is asked which version of the object
// is the present one: what the caches have is nearly always that. If not, or if anything else has changed meanwhile, the verdict is
// evaluated again. Errors are API errors.
func (r *Refresher) CurrentVerdict(ctx context.Context, key desired.Key, since time.Time) (*syncv1.SyncStatus, error) {
	assumed, _ := r.index.Resolve(key)
	if len(assumed.Zones) == 0 { // No server is asked, or the caches may learn of others until then.
		if err := r.WaitForObject(ctx, key); err != nil {
			return nil, err
		}
		return r.ResolvedVerdicts(ctx, []desired.Key{key}, since)[0], nil
	}
	early, outdate := context.WithCancel(ctx)
	defer outdate()
	var v *syncv1.SyncStatus
	evaluated := parallel.Start(func() {
		r.asker.Prefetch(early, &assumed, since)
		v = r.ResolvedVerdicts(early, []desired.Key{key}, since)[0]
	})
	if err := r.WaitForObject(ctx, key); err != nil { // It takes longest, and is sent first.
		return nil, err
	}
	if now, _ := r.index.Resolve(key); now.Equal(&assumed) {
		if evaluated(); v != nil && r.publisher.IsPublished(key, r.publisher.Digest(v)) {
			return v, nil
		}
	}
	outdate()
	return r.ResolvedVerdicts(ctx, []desired.Key{key}, since)[0], nil
}

// Verdicts evaluates objects by answers from since or later, or by the last answers when since is zero, and publishes them.
// Servers that do not answer within the deadline count as silent. The result is in the order of keys; it has nil for an
// object that does not exist, and for all that are left when ctx ends.
func (r *Refresher) Verdicts(ctx context.Context, keys []desired.Key, since time.Time) []*syncv1.SyncStatus {
	return r.confirmedVerdicts(ctx, keys, request{since: since, confirmed: map[desired.Key]uint64{}})
}

// ResolvedVerdicts is Verdicts for a few objects, of which the servers are also asked for what they declare, as resolvers ask.
func (r *Refresher) ResolvedVerdicts(ctx context.Context, keys []desired.Key, since time.Time) []*syncv1.SyncStatus {
	return r.confirmedVerdicts(ctx, keys, request{since: since, resolve: true, confirmed: map[desired.Key]uint64{}})
}

// request is what somebody wants to know, and what was done for it.
type request struct {
	since   time.Time
	resolve bool
	// confirmed are the digests of verdicts that were looked at twice, rounds how often that was done.
	confirmed map[desired.Key]uint64
	rounds    int
}

// confirmedVerdicts looks twice at what looks wrong, and evaluates what has become outdated meanwhile once more. All else is published at
// once: it does not wait for the servers of the others.
func (r *Refresher) confirmedVerdicts(ctx context.Context, keys []desired.Key, q request) []*syncv1.SyncStatus {
	verdicts, evaluatedFrom, found := r.evaluate(ctx, keys, q)
	if ctx.Err() != nil {
		return make([]*syncv1.SyncStatus, len(keys))
	}
	found = slices.DeleteFunc(found, func(f finding) bool { return q.rounds == maxConfirmations || q.confirmed[f.key] == f.digest })
	sure := slices.Clone(verdicts)
	var doubtful []int // indexes of keys
	for _, f := range found {
		q.confirmed[f.key], sure[f.index] = f.digest, nil
		doubtful = append(doubtful, f.index)
	}
	doubtful = append(doubtful, r.publisher.Publish(evaluatedFrom, sure...)...)
	slices.Sort(doubtful)
	if len(doubtful) == 0 {
		return verdicts
	}
	if len(found) > 0 {
		r.confirm(ctx, found)
		q.rounds++
	}
	again := make([]desired.Key, len(doubtful))
	for n, i := range doubtful {
		again[n] = keys[i]
	}
	for n, v := range r.confirmedVerdicts(ctx, again, q) {
		verdicts[doubtful[n]] = v
	}
	return verdicts
}

// evaluate makes verdicts, with the revision at which their evaluation began, and what has to be confirmed before they are published.
func (r *Refresher) evaluate(ctx context.Context, keys []desired.Key, q request) (verdicts []*syncv1.SyncStatus, evaluatedFrom uint64, found []finding) {
	var oldest time.Time
	if q.resolve && !slices.ContainsFunc(keys, func(k desired.Key) bool { return k.Kind == subject.ZoneKind.Kind }) {
		oldest = q.since
	}
	evaluatedFrom = r.publisher.Revision()
	subjects := make([]*desired.Subject, len(keys)) // nil for what does not exist
	parallel.ForRange(len(keys), func(i int) {
		if s, exists := r.index.Resolve(keys[i]); exists {
			subjects[i] = &s
		}
	})
	r.asker.AskSubjects(ctx, subjects, q.since, q.resolve)
	judgements := map[*desired.Zone]*syncstatus.Evaluation{}
	for z := range desired.ZonesOf(subjects...) {
		judgements[z] = r.evaluator.Judge(z, oldest, q.resolve)
	}
	if q.resolve {
		r.asker.AskFurther(ctx, subjects, judgements, q.since)
	}
	verdicts = make([]*syncv1.SyncStatus, len(keys))
	var mu sync.Mutex
	parallel.ForRange(len(keys), func(i int) {
		s := subjects[i]
		if s == nil {
			return
		}
		verdicts[i] = r.evaluator.Status(s, func(n int) *syncstatus.Evaluation { return judgements[s.Zones[n]] })
		if f, doubtful := r.findingOf(s, verdicts[i]); doubtful {
			mu.Lock()
			defer mu.Unlock()
			f.index = i
			found = append(found, f)
		}
	})
	return verdicts, evaluatedFrom, found
}
