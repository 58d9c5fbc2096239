// Package registry serves SyncStatus objects as Kubernetes REST storage: get, list and watch of syncstatuses, and the virtual
// subresource syncstatus of every kind that has one. It understands requests (selectors, paging, tables) and leaves all else
// to package refresh, which evaluates and publishes verdicts, and to package store, which delivers them to watches.
package registry

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/apiserver/refresh"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Options say how DNS servers are asked.
type Options struct {
	refresh.Options
	// MaxAge is how old an answer of a server may be when a list uses it. For single objects servers are always asked anew.
	MaxAge time.Duration
	// SystemNamespace is that of Lockstep, and of the instances of cluster-scoped clusters that name none.
	SystemNamespace string
}

// Verdicts computes SyncStatus objects on demand. It is safe for concurrent use.
type Verdicts struct {
	options   Options
	informers *informers.Informers
	index     *desired.Index
	refresher *refresh.Refresher
	store     *store.Store
	events    *metrics.CounterVec
}

// New judges the Kubernetes cluster at config. Run starts it.
func New(config *rest.Config, options Options) (*Verdicts, error) {
	inf, err := informers.New(config, options.SystemNamespace)
	if err != nil {
		return nil, err
	}
	keys, err := ask.ReadKeys(config)
	if err != nil {
		return nil, err
	}
	return NewFrom(inf, serving.Servers, keys, options)
}

// NewFrom judges the objects of some caches by the servers that find returns. Where there is no Kubernetes cluster, objects, servers and keys
// come from elsewhere.
func NewFrom(inf *informers.Informers, find desired.ServerFinder, keys tsigkey.ReadFunc, options Options) (*Verdicts, error) {
	return newVerdicts(inf, find, keys, time.Now, options)
}

func newVerdicts(inf *informers.Informers, find desired.ServerFinder, keys tsigkey.ReadFunc, now func() time.Time, options Options) (*Verdicts, error) {
	v := &Verdicts{options: options, informers: inf, index: desired.NewIndex(inf, find), events: metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "lockstep", Subsystem: "syncstatus", Name: "watch_events_total",
		Help: "Events handed to watchers, by type.", StabilityLevel: metrics.ALPHA,
	}, []string{"type"})}
	v.store = store.New(now, func(t watch.EventType) { v.events.WithLabelValues(string(t)).Inc() })
	refresher, err := refresh.New(inf, v.index, keys, v.store, options.Options)
	v.refresher = refresher
	return v, err
}

// Informers are the caches, which are a readiness check among other things.
func (v *Verdicts) Informers() *informers.Informers { return v.informers }

// Run fills the caches and keeps them current until the context ends.
func (v *Verdicts) Run(ctx context.Context) { v.refresher.Run(ctx) }

// EndWatches ends every watch, one after the other within the given time.
func (v *Verdicts) EndWatches(ctx context.Context, within time.Duration) {
	v.store.EndWatches(ctx, within)
}

// RegisterMetrics registers the metrics, once in a registry.
func (v *Verdicts) RegisterMetrics(register func(metrics.Registerable) error, custom func(metrics.StableCollector) error) error {
	if err := register(v.events); err != nil {
		return err
	}
	return v.refresher.RegisterMetrics(register, custom, v.store.Watches)
}

// maxListings bounds how often a list is made again because objects came or went meanwhile.
const maxListings = 3

// listVerdicts makes all SyncStatus objects that a query selects, sorted by namespace and name, by answers no older than Options.MaxAge;
// for a single object as get does. Errors are API errors.
func (v *Verdicts) listVerdicts(ctx context.Context, q *query) (*syncv1.SyncStatusList, error) {
	called := time.Now()
	for listing := 1; ; listing++ {
		list, agrees, err := v.tryList(ctx, q, called)
		if err != nil || agrees || listing == maxListings {
			return list, err
		}
	}
}

// tryList makes a list. agrees means that a watch that goes on from it takes the client to know what is in the list and nothing else. A
// page is part of a list.
func (v *Verdicts) tryList(ctx context.Context, q *query, called time.Time) (list *syncv1.SyncStatusList, agrees bool, err error) {
	if err := v.waitReady(ctx); err != nil {
		return nil, false, err
	}
	since, verdictsOf := called, v.refresher.Verdicts
	if key, ok := q.singleObject(); ok {
		verdictsOf = v.refresher.ResolvedVerdicts
		if err := v.refresher.WaitForObject(ctx, key); err != nil {
			return nil, false, err
		}
	} else {
		since = since.Add(-v.options.MaxAge)
	}
	evaluatedFrom := v.store.Revision()
	token, keys, err := skipPages(q.continueAt, v.candidates(q))
	if err != nil {
		return nil, false, err
	}
	out, published := &syncv1.SyncStatusList{Items: []syncv1.SyncStatus{}}, []*syncv1.SyncStatus(nil)
	rest, limit := keys, cmp.Or(int(q.limit), len(keys))
	for len(rest) > 0 && len(out.Items) < limit {
		n := min(len(rest), limit-len(out.Items))
		page := slices.DeleteFunc(verdictsOf(ctx, rest[:n], since), func(s *syncv1.SyncStatus) bool { return s == nil })
		if ctx.Err() != nil {
			return nil, false, errorFor(ctx, rest[0])
		}
		out.Items = slices.Grow(out.Items, len(page))
		for _, s := range page {
			if q.Matches(s) {
				out.Items = append(out.Items, *s)
			}
		}
		published, rest = append(published, page...), rest[n:]
	}
	if out.ResourceVersion = token.ResourceVersion; q.continueAt == "" {
		if len(rest) == 0 {
			v.store.EndUnlisted(evaluatedFrom, q.scope(), q, published, v.uidOf)
		}
		out.ResourceVersion, agrees = v.store.ListRevision(evaluatedFrom, q.scope(), q, published, len(rest) > 0)
	}
	if len(rest) > 0 {
		// Whether the last object of this page is in it makes no difference: it may have been deleted meanwhile.
		last := keys[len(keys)-len(rest)-1]
		out.Continue = pageToken{out.ResourceVersion, last.Namespace, nameOf(last)}.encode()
		if q.fields.Empty() {
			out.RemainingItemCount = new(int64(len(rest)))
		}
	}
	return out, agrees || q.continueAt != "" || out.Continue != "", nil
}

// uidOf is "" if the object is not in the caches.
func (v *Verdicts) uidOf(key desired.Key) types.UID {
	if o, exists := informers.Get[metav1.Object](v.informers, key.Kind, key.Namespace, key.Name); exists {
		return o.GetUID()
	}
	return ""
}

// candidates are the objects that a query may select, judged by what needs no server, in the order of lists.
func (v *Verdicts) candidates(q *query) []desired.Key {
	if key, ok := q.singleObject(); ok {
		if v.informers.Exists(key) {
			return []desired.Key{key}
		}
		return nil
	}
	wantedKind, byKind := q.fields.RequiresExactMatch(syncv1.FieldKind)
	name, byName := q.fields.RequiresExactMatch(syncv1.FieldName)
	zone, byZone := q.fields.RequiresExactMatch(syncv1.FieldZone)
	byZone = byZone && zone != "" // What no zone has is found by the verdict.
	var keys []desired.Key
	for _, kind := range v.informers.TrackedKinds() {
		if byKind && kind != wantedKind {
			continue
		}
		for _, o := range informers.List[metav1.Object](v.informers, kind, q.namespace) {
			k := desired.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
			if q.labels.Matches(labels.Set(subject.LabelsOf(o))) && (!byName || nameOf(k) == name) && (!byZone || slices.Contains(v.index.ZoneNames(k), zone)) {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// startWatch follows the objects that a query selects. Errors are API errors.
func (v *Verdicts) startWatch(ctx context.Context, q *query, o store.WatchOptions) (*store.Watcher, error) {
	w, err := v.store.Watch(ctx, q.scope(), q, o)
	if err != nil {
		return nil, err
	}
	err = v.waitReady(ctx)
	if key, ok := q.singleObject(); ok && err == nil {
		err = v.refresher.WaitForObject(ctx, key)
	}
	if err != nil {
		w.Stop()
		return nil, err
	}
	go v.serveWatch(ctx, w, q)
	return w, nil
}

// serveWatch keeps the verdicts of a watch up to date until it ends.
func (v *Verdicts) serveWatch(ctx context.Context, w *store.Watcher, q *query) {
	defer w.Stop()
	interest := v.refresher.Track(q.scope()) //nolint:contextcheck // servers are asked in the name of all readers, under a context of the API server
	defer interest.Stop()
	process := v.refresher.Context()
	select {
	case <-interest.Ready():
		backlog := w.Backlog()
		slices.SortFunc(backlog, compareKeys)
		verdicts := v.refresher.Verdicts(ctx, backlog, time.Time{})
		w.Begin(slices.DeleteFunc(verdicts, func(s *syncv1.SyncStatus) bool { return s == nil }))
	case <-w.Done():
	case <-process.Done():
	}
	select {
	case <-w.Done():
	case <-process.Done():
	}
}
