package refresh

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
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
		r.prefetch(early, &assumed, since)
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

// prefetch asks the servers of an object all that its verdict needs, at once. Nobody waits for the answers here; who asks next
// shares them.
func (r *Refresher) prefetch(ctx context.Context, s *desired.Subject, since time.Time) {
	ctx = context.WithoutCancel(ctx)
	go r.askZones(ctx, zonesOf(s), since)
	for z, keys := range resolvable(s) {
		for _, server := range z.Servers {
			if server.ReadBy != v1beta1.ReadByQuery {
				go r.askEach(ctx, z, server, keys, since)
			}
		}
	}
	for z, server := range readByQuery(s) {
		go r.askObject(ctx, z, server, s.Key, since)
	}
}

// Verdicts evaluates objects by answers from since or later, or by the last answers when since is zero, and publishes them.
// Servers that do not answer within the deadline count as silent. The result is in the order of keys; it has nil for an
// object that does not exist, and for all that are left when ctx ends.
func (r *Refresher) Verdicts(ctx context.Context, keys []desired.Key, since time.Time) []*syncv1.SyncStatus {
	return r.verdicts(ctx, keys, since, false)
}

// ResolvedVerdicts is Verdicts for a few objects, of which the servers are also asked for what they declare, as resolvers ask.
func (r *Refresher) ResolvedVerdicts(ctx context.Context, keys []desired.Key, since time.Time) []*syncv1.SyncStatus {
	return r.verdicts(ctx, keys, since, true)
}

func (r *Refresher) verdicts(ctx context.Context, keys []desired.Key, since time.Time, resolve bool) []*syncv1.SyncStatus {
	verdicts, evaluatedFrom := r.evaluate(ctx, keys, since, resolve)
	if ctx.Err() != nil {
		return make([]*syncv1.SyncStatus, len(keys))
	}
	outdated := r.publisher.Publish(evaluatedFrom, verdicts...)
	if len(outdated) == 0 {
		return verdicts
	}
	again := make([]desired.Key, len(outdated))
	for n, i := range outdated {
		again[n] = keys[i]
	}
	for n, v := range r.verdicts(ctx, again, since, resolve) {
		verdicts[outdated[n]] = v
	}
	return verdicts
}

// evaluate makes verdicts that are fit to be published, and the revision at which their evaluation began. What looks wrong is looked at
// twice.
func (r *Refresher) evaluate(ctx context.Context, keys []desired.Key, since time.Time, resolve bool) (verdicts []*syncv1.SyncStatus, evaluatedFrom uint64) {
	confirmed := map[desired.Key]uint64{}
	var oldest time.Time
	if resolve && !slices.ContainsFunc(keys, func(k desired.Key) bool { return k.Kind == syncstatus.ZoneKind.Kind }) {
		oldest = since
	}
	for round := 0; ; round++ {
		evaluatedFrom = r.publisher.Revision()
		subjects := make([]*desired.Subject, len(keys)) // nil for what does not exist
		for i, k := range keys {
			if s, exists := r.index.Resolve(k); exists {
				subjects[i] = &s
			}
		}
		r.askSubjects(ctx, subjects, since)
		if resolve {
			var secured sync.WaitGroup
			secured.Go(func() { r.askSecured(ctx, subjects, since) })
			r.askResolvable(ctx, subjects, since)
			r.awaitQuestions(ctx, wholeZones(subjects), since, complete)
			secured.Wait()
		} else if !since.IsZero() {
			r.awaitQuestions(ctx, zonesOf(subjects...), since, urgent)
		}
		judgements := map[*desired.Zone]*syncstatus.Evaluation{}
		for z := range zonesOf(subjects...) {
			judgements[z] = r.evaluator.Judge(z, oldest, resolve)
		}
		if resolve {
			r.askFurther(ctx, subjects, judgements, since)
		}
		verdicts = make([]*syncv1.SyncStatus, len(keys))
		var mu sync.Mutex
		var found []finding
		parallel.ForRange(len(keys), func(i int) {
			s := subjects[i]
			if s == nil {
				return
			}
			verdicts[i] = r.evaluator.Status(s, func(n int) *syncstatus.Evaluation { return judgements[s.Zones[n]] })
			if f, doubtful := r.findingOf(s, verdicts[i]); doubtful {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, f)
			}
		})
		found = slices.DeleteFunc(found, func(f finding) bool { return confirmed[f.key] == f.digest })
		if round == maxConfirmations || len(found) == 0 || ctx.Err() != nil {
			return verdicts, evaluatedFrom
		}
		for _, f := range found {
			confirmed[f.key] = f.digest
		}
		r.confirm(ctx, found)
	}
}

// askSubjects asks all servers that the verdicts about some objects follow from, each zone of a server once.
func (r *Refresher) askSubjects(ctx context.Context, subjects []*desired.Subject, since time.Time) {
	zones := zonesOf(subjects...)
	var fleets []metav1.Object
	for _, s := range subjects {
		if s != nil && informers.DescribesServers(s.Key.Kind) {
			fleets = append(fleets, s.Object)
		}
	}
	var wg sync.WaitGroup
	if len(fleets) > 0 && !since.IsZero() {
		wg.Go(func() { r.askFleets(ctx, since, placesOf(zones), fleets...) })
	}
	wg.Go(func() { r.askPaths(ctx, zones, since) })
	wg.Go(func() { r.askParents(ctx, zones, since) })
	r.askZones(ctx, zones, since)
	r.askKeys(ctx, zones)
	wg.Wait()
	r.askPathsAgain(ctx, zones)
}

// wholeZones are the zones among some objects, which all that is declared in them matters to.
func wholeZones(subjects []*desired.Subject) map[*desired.Zone]bool {
	zones := map[*desired.Zone]bool{}
	for _, s := range subjects {
		if s != nil && s.Key.Kind == syncstatus.ZoneKind.Kind {
			zones[s.Zones[0]] = true
		}
	}
	return zones
}

func zonesOf(subjects ...*desired.Subject) map[*desired.Zone]bool {
	zones := map[*desired.Zone]bool{}
	for _, s := range subjects {
		if s != nil {
			for _, z := range s.Zones {
				zones[z] = true
			}
		}
	}
	return zones
}
