package refresh

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// Bounds of looking twice at what seems to be wrong. What they leave out is judged as the caches have it.
const (
	// maxLiveReads is how many objects are read past the caches for one evaluation, concurrentReads how many at a time.
	maxLiveReads, concurrentReads = 256, 32
	// maxConfirmations is how often a reader has verdicts looked at that are different ones each time.
	maxConfirmations = 5
)

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

// finding is a verdict by which servers hold wrong data on the right serial, or on one ahead of it.
type finding struct {
	key    desired.Key
	digest uint64
	// doubted are the servers that are to be asked again, disputed the objects that are to be read past the caches. Of kinds
	// others may exist that decide, too.
	doubted  []placeOfZone
	disputed []desired.Key
	kinds    []kindIn
}

// kindIn is the objects of a kind in a namespace.
type kindIn struct {
	kind      syncstatus.Kind
	namespace string
}

// kindsDeclaring are the kinds of objects that may declare what a verdict compares with, in the namespace of the zone.
func kindsDeclaring(v *syncv1.SyncStatus, namespace string) []kindIn {
	kinds := []kindIn{{syncstatus.EndpointKind, namespace}}
	for _, k := range v1beta1.RecordKinds {
		if slices.ContainsFunc(v.RRsets, func(s syncv1.RRset) bool { return s.Type == k.Type }) {
			kinds = append(kinds, kindIn{syncstatus.Kind{Kind: k.Kind, Resource: k.Resource, Singular: k.Singular}, namespace})
		}
	}
	return kinds
}

type placeOfZone struct {
	zone   *desired.Zone
	server int
}

// findingOf decides whether a verdict needs another look before it is believed, and at what: at content that was not transferred lately,
// and, if the verdict is news, at the objects, and at the primaries that a server seems to be ahead of.
func (r *Refresher) findingOf(s *desired.Subject, v *syncv1.SyncStatus) (f finding, doubtful bool) {
	f = finding{key: s.Key, digest: r.publisher.Digest(v)}
	isNews := !r.publisher.IsPublished(s.Key, f.digest)
	for _, z := range s.Declaring() {
		current, ahead, shadowed := evaluate.ServersWithWrongData(v, z)
		for i, server := range z.Servers {
			place := evaluate.PlaceOf(server, z.Declared.ZoneName())
			if slices.Contains(current, server.Addr) && r.schedule.doubtContent(place) || isNews && len(ahead) > 0 && server.Role == observe.Primary && server.Addr.IsValid() {
				f.doubted = append(f.doubted, placeOfZone{z, i})
			}
		}
		if isNews && len(current)+len(ahead)+len(shadowed) > 0 {
			f.disputed = append(f.disputed, evaluate.DisputedObjects(s.Key, v, z)...)
			f.kinds = append(f.kinds, kindsDeclaring(v, z.Key.Namespace)...)
		}
	}
	return f, len(f.doubted)+len(f.disputed) > 0
}

// confirm takes another look at what findings follow from. Without an answer the caches are believed.
func (r *Refresher) confirm(ctx context.Context, found []finding) {
	places, disputed, kinds := map[placeOfZone]bool{}, map[desired.Key]bool{}, map[kindIn]bool{}
	for _, f := range found {
		for _, p := range f.doubted {
			places[p] = true
		}
		for _, of := range f.kinds {
			kinds[of] = true
		}
		for _, key := range f.disputed {
			if len(disputed) < maxLiveReads {
				disputed[key] = true
			}
		}
	}
	began := time.Now()
	var questions, reads sync.WaitGroup
	for p := range places {
		server := p.zone.Servers[p.server]
		if !r.isSilentSince(evaluate.PlaceOf(server, p.zone.Declared.ZoneName()), time.Time{}) { // It was asked a moment ago.
			questions.Go(func() { r.askServer(ctx, p.zone, server, began) })
		}
	}
	questions.Wait()
	ctx, cancel := context.WithTimeout(ctx, r.options.Deadline)
	defer cancel()
	for of := range kinds {
		reads.Go(func() { r.waitForKind(ctx, of) })
	}
	turns := make(chan struct{}, concurrentReads)
	for key := range disputed {
		turns <- struct{}{}
		reads.Go(func() {
			_ = r.WaitForObject(ctx, key)
			<-turns
		})
	}
	reads.Wait()
}
