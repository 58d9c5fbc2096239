package zone

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// zoneReconciler brings one zone at a time to its servers: what changed of the objects that declare its data is turned into
// the desired content, compared with what every primary holds, and applied; the secondaries are told to follow.
type zoneReconciler struct {
	client   client.Client
	deps     Options
	world    *world
	states   states
	provider *rfc2136.Provider
	keys     *tsigkeys.Cache
	writer   *syncevent.Writer
	metrics  *syncevent.Metrics
	notifier syncevent.Notifier
	silence  *silence
	serials  serials
	backoff  workqueue.TypedRateLimiter[ctrl.Request]
	now      func() time.Time
}

// Reconcile implements reconcile.Reconciler. A request without a name is for the objects of a namespace that are in no
// zone.
func (r *zoneReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" {
		// The zero zone: none has them.
		r.writer.Release(zoneKey{}, r.world.takeOrphans(req.Namespace)...)
		return ctrl.Result{}, nil
	}
	zone, namesakes := r.world.zone(req.NamespacedName)
	if zone == nil {
		r.states.drop(req.NamespacedName)
		r.serials.drop(req.NamespacedName)
		r.writer.Forget(req.NamespacedName)
		r.metrics.Forget(req.NamespacedName)
		r.backoff.Forget(req)
		return ctrl.Result{}, nil
	}
	s, err := r.surroundings(ctx, zone, namesakes)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !zone.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, zone, s)
	}
	if err := r.markZone(ctx, zone); err != nil {
		return ctrl.Result{}, err
	}
	p := &pass{zoneReconciler: r, surroundings: s, zone: zone, state: r.states.of(zone)}
	markErr := p.run(ctx)
	level := 0
	if p.rested {
		level = 1 // Thousands of zones are looked at now and then.
	}
	log.FromContext(ctx).V(level).Info("zone reconciled", "zone", zone.Spec.ZoneName, "serial", p.event.Serial,
		"changed", p.event.Changes.Len(), "touched", len(p.event.Touched), "all", p.event.All, "problem", problemOf(p.event))
	if err := errors.Join(markErr, r.notifier.Notify(ctx, p.event)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.idle(req)}, nil
}

func problemOf(e syncevent.SyncCompleted) string {
	if e.Problem.Holds() {
		return ""
	}
	return e.Problem.Message
}

// surroundings are what a pass over a zone depends on beside the zone and the objects of its data.
type surroundings struct {
	instances []*v1beta1.Bind9Instance
	servers   []observe.Server
	// duplicateOf is the older zone that has the same name on the same servers; nil if there is none.
	duplicateOf *v1beta1.DNSZone
	signing     signing
}

func (r *zoneReconciler) surroundings(ctx context.Context, zone *v1beta1.DNSZone, namesakes []*v1beta1.DNSZone) (s surroundings, err error) {
	all, err := fleet.ListLiveInstances(ctx, r.client)
	if err != nil {
		return s, err
	}
	s.instances = membership.InstancesOf(zone, all)
	s.duplicateOf = membership.DuplicateOf(zone, namesakes, all)
	if s.signing, err = r.signingOf(ctx, zone, s.instances); err != nil {
		return s, err
	}
	s.servers, err = fleet.ListServers(ctx, r.client, s.instances)
	s.follow()
	return s, err
}

// wake tells the reconciler of an instance that a zone has arrived on its pods, or left them.
func (r *zoneReconciler) wake(namespace, instance string) {
	r.deps.Instances.Wake(namespace, instance)
}
