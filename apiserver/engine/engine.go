package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Options of an Engine.
type Options struct {
	// MaxAge is how old an answer of a server may be when a list uses it. Single objects are always asked for anew.
	MaxAge time.Duration
	// Deadline is how long servers are waited for; the answer then tells which were too slow.
	Deadline time.Duration
	// WatchInterval is how often servers of watched zones are asked for their serial; one that tells of new serials is
	// asked about few of its zones each time.
	WatchInterval time.Duration
	// Notices tells of new serials, so that a watch shows a change at once and servers at rest are hardly asked. Without
	// it every server of a watched zone is asked at the interval.
	Notices Notices
	// VerifyInterval is how often a zone's content is fetched completely although its serial has not changed.
	VerifyInterval time.Duration
	// Home is the namespace of the instances of cluster-scoped clusters that name none.
	Home string
	// Roots are the authorities by which sidecars' certificates are verified; nil to ask no sidecar.
	Roots func(context.Context) (*x509.CertPool, error)
}

// Engine computes SyncStatus objects on demand. It is safe for concurrent use.
type Engine struct {
	options   Options
	informers *Informers
	index     *Index
	observer  *observe.Observer
	keys      *tsigkey.Cache
	revisions *revisions
	memory    *memory
	hub       *hub
	listeners *listeners
	verified  verified
	late      late
	former    former
	fleet     fleetAnswers
	meter     *meter
	// sidecars asks sidecars how they are; nil where there are none.
	sidecars *bindcar.Client
}

// New makes an engine that reads the cluster at config. Run starts it.
func New(config *rest.Config, options Options) (*Engine, error) {
	informers, err := NewInformers(config, options.Home)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for transfer keys: %w", err)
	}
	return newEngine(informers, transferKeys(client), options)
}

func newEngine(informers *Informers, key tsigkey.ReadFunc, options Options) (*Engine, error) {
	revisions, meter := newRevisions(time.Now), newMeter(time.Now)
	e := &Engine{
		meter:   meter,
		options: options, informers: informers, index: newIndex(informers), revisions: revisions,
		keys: tsigkey.NewCache(key, keyMaxAge), memory: newMemory(revisions),
		listeners: &listeners{open: options.Notices, streams: map[Peer]*stream{}},
	}
	e.observer = observe.New(observe.Options{Timeout: options.Deadline, Meter: meter, Replaced: func(server netip.AddrPort, was, is *observe.Mirror) {
		e.former.note(server, was, is, time.Now())
	}})
	if options.Roots != nil {
		e.sidecars = bindcar.NewClient(bindcar.ClientOptions{Roots: options.Roots, Timeout: options.Deadline})
	}
	e.hub = newHub(e)
	return e, e.follow()
}

// Informers are the engine's caches, a readiness check among other things.
func (e *Engine) Informers() *Informers { return e.informers }

// Run fills the caches and keeps them current until the context ends.
func (e *Engine) Run(ctx context.Context) {
	e.hub.start(ctx)
	e.informers.Run(ctx)
}

func blank() *syncv1.SyncStatus {
	return &syncv1.SyncStatus{TypeMeta: metav1.TypeMeta{APIVersion: syncv1.SchemeGroupVersion.String(), Kind: "SyncStatus"}}
}

func nameOf(o object) string { return syncstatus.Name(o.Kind, o.Name) }

// errNotReady is told while the caches are being filled: an empty answer would be a lie.
func (e *Engine) ready() error {
	if e.informers.HasSynced() {
		return nil
	}
	return apierrors.NewServiceUnavailable("the caches of this server are being filled")
}

// Get computes one SyncStatus from answers that are not older than the call, about the object as it is in the cluster
// now. Errors are API errors.
func (e *Engine) Get(ctx context.Context, kind syncstatus.Kind, namespace, name string) (*syncv1.SyncStatus, error) {
	key := object{Kind: kind.Kind, Namespace: namespace, Name: name}
	began := time.Now()
	e.prefetch(ctx, key, began)
	if err := e.freshen(ctx, kind, key); err != nil {
		return nil, err
	}
	s := e.compute(ctx, []object{key}, began)[0]
	if s == nil {
		return nil, apierrors.NewNotFound(syncv1.Resource("syncstatuses"), nameOf(key))
	}
	if _, changed := e.memory.stamp(s); changed {
		e.hub.poke(key)
	}
	return s, nil
}

// prefetch asks the servers while it is still being found out what they should serve. Nobody waits for the answers here:
// whoever asks next shares them.
func (e *Engine) prefetch(ctx context.Context, key object, since time.Time) {
	if e.ready() != nil {
		return
	}
	if s, _ := e.index.resolve(key); len(s.views) > 0 {
		go e.judgeAll(context.WithoutCancel(ctx), judgements(s), since)
	}
}

// freshen makes sure that what is computed next is not about an older version of the object than the caller has seen.
func (e *Engine) freshen(ctx context.Context, kind syncstatus.Kind, key object) error {
	if err := e.ready(); err != nil {
		return err
	}
	if err := e.informers.fresh(ctx, kind, key.Namespace, key.Name); err != nil {
		if ctx.Err() != nil {
			return apierrors.NewTimeoutError(err.Error(), 1)
		}
		return apierrors.NewServiceUnavailable(err.Error())
	}
	e.index.apply(key)
	return nil
}

// compute gives the SyncStatus of each object, in order; nil for those that do not exist. Every zone that is needed
// is observed once, all at the same time; those on which a server looks wrong once more, by what it transfers anew.
func (e *Engine) compute(ctx context.Context, keys []object, since time.Time) []*syncv1.SyncStatus {
	subjects := make([]subject, len(keys))
	exists := make([]bool, len(keys))
	for i, k := range keys {
		subjects[i], exists[i] = e.index.resolve(k)
	}
	judged := judgements(subjects...)
	var fleets []metav1.Object
	for i, s := range subjects {
		if exists[i] && isFleet(s.key.Kind) {
			fleets = append(fleets, s.object)
		}
	}
	var wg sync.WaitGroup
	if len(fleets) > 0 {
		followed := map[zoneAt]bool{}
		for v := range judged {
			v.addQuestions(followed)
		}
		wg.Go(func() { e.askFleets(ctx, since, followed, fleets...) })
	}
	e.judgeAll(ctx, judged, since)
	wg.Wait()
	out := make([]*syncv1.SyncStatus, len(keys))
	all := func() {
		onAllProcessors(len(subjects), func(i int) {
			if s := subjects[i]; exists[i] {
				out[i] = e.statusOf(s, func(i int) *syncstatus.Judgement { return judged[s.views[i]] })
			}
		})
	}
	all()
	again := map[*view]*syncstatus.Judgement{}
	for i, s := range subjects {
		for _, v := range s.views {
			if out[i] != nil && e.doubts(v, out[i]) {
				again[v] = nil
			}
		}
	}
	if len(again) > 0 {
		e.judgeAll(ctx, again, since)
		maps.Copy(judged, again)
		all()
	}
	return out
}

// judgements has a place for each view of the subjects.
func judgements(subjects ...subject) map[*view]*syncstatus.Judgement {
	all := map[*view]*syncstatus.Judgement{}
	for _, s := range subjects {
		for _, v := range s.views {
			all[v] = nil
		}
	}
	return all
}

func (e *Engine) judgeAll(ctx context.Context, views map[*view]*syncstatus.Judgement, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Deadline)
	defer cancel()
	all := slices.Collect(maps.Keys(views))
	judged := make([]*syncstatus.Judgement, len(all))
	var wg sync.WaitGroup
	for i, v := range all {
		wg.Go(func() { judged[i] = e.judge(ctx, v, since) })
	}
	wg.Wait()
	for i, v := range all {
		views[v] = judged[i]
	}
}

// judge asks all servers of a zone at once. Answers from before the zone was declared as it is now are never used.
func (e *Engine) judge(ctx context.Context, v *view, since time.Time) *syncstatus.Judgement {
	if since.Before(v.since) {
		since = v.since
	}
	answers := make([]observe.Observation, len(v.servers))
	var wg sync.WaitGroup
	for i, s := range v.servers {
		if s.Addr.IsValid() {
			wg.Go(func() { answers[i] = e.observe(ctx, v, s, since) })
		}
	}
	wg.Wait()
	return e.judged(v, answers)
}

// observe asks one server for one zone.
func (e *Engine) observe(ctx context.Context, v *view, s observe.Server, since time.Time) observe.Observation {
	zone := v.declared.ZoneName()
	instance := v.instances[object{Kind: syncstatus.InstanceKind.Kind, Namespace: s.Namespace, Name: s.Instance}]
	var secret types.NamespacedName
	var key *wire.Key
	if instance != nil {
		secret = types.NamespacedName{Namespace: s.Namespace, Name: named.TransferKeySecretName(instance)}
		if key, _ = e.keys.Get(ctx, secret); key == nil && ctx.Err() != nil {
			return observe.GaveUp(ctx, s.Addr, zone) // Others would share what is asked without a key.
		}
	}
	if e.verified.due(s.Addr, zone, e.options.VerifyInterval) {
		e.observer.Invalidate(s.Addr, zone)
	}
	e.meter.meet(s)
	o := e.observer.Observe(ctx, s.Addr, zone, key, since)
	e.fleet.keepZone(zoneAt{s.Addr, strings.TrimSuffix(zone, ".")}, o)
	var we *wire.Error
	if errors.As(o.Err, &we) && we.TSIGError != 0 {
		e.keys.Invalidate(secret, key)
	}
	return o
}

// statusOf gives the SyncStatus of a subject; judged gives the judgement of each of its zones. It is nil when these know
// nothing of the object.
func (e *Engine) statusOf(s subject, judged func(zone int) *syncstatus.Judgement) *syncv1.SyncStatus {
	if isFleet(s.key.Kind) {
		return e.fleetStatus(s.object)
	}
	switch o := s.object.(type) {
	case *v1alpha1.DNSEndpoint:
		in := make([]*syncstatus.Judgement, len(s.zones))
		for i := range in {
			in[i] = judged(i)
		}
		return syncstatus.Endpoint(o, in, s.unplaced, time.Now())
	case v1beta1.Record:
		return syncstatus.Unselected(o, time.Now())
	}
	j := judged(0)
	if s.key.Kind == syncstatus.ZoneKind.Kind {
		return j.ZoneStatus()
	}
	if r, ok := j.Object(s.key).(v1beta1.Record); ok {
		return j.Record(r)
	}
	return nil
}
