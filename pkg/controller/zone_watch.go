package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// SetupZone adds the reconciler of zones and their records. It runs when a zone, a record, an instance or a pod
// changes in a way that matters to DNS; status that we write ourselves never wakes it.
func SetupZone(mgr ctrl.Manager, deps Deps) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1beta1.DNSZone{}, zoneNameField, func(o client.Object) []string {
		return []string{source.DNSName(o.(*v1beta1.DNSZone))}
	}); err != nil {
		return err
	}
	records := syncevent.NewRecords(mgr.GetClient())
	r := &zoneReconciler{
		client:   mgr.GetClient(),
		deps:     deps,
		provider: rfc2136.New(rfc2136.Options{}),
		keys:     &keyring{reader: mgr.GetAPIReader()},
		records:  records,
		notifier: syncevent.Notifier{records, syncevent.Zones{Client: mgr.GetClient()}},
		backoff:  workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstPause, refusePause),
		now:      time.Now,
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("zone").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Watches(&v1beta1.DNSZone{}, handler.EnqueueRequestsFromMapFunc(r.zonesOfZone), wantedChanged()).
		Watches(&v1beta1.Bind9Instance{}, handler.EnqueueRequestsFromMapFunc(r.zonesOfInstance), instanceChanged()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.zonesOfPod), podChanged())
	for _, kind := range v1beta1.RecordKinds {
		b = b.Watches(kind.New(), handler.EnqueueRequestsFromMapFunc(r.zonesOfRecord), wantedChanged())
	}
	return b.Complete(r)
}

// wantedChanged passes what a user can change: spec, labels, annotations, deletion.
func wantedChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
}

// instanceChanged passes what decides which zones an instance serves and where.
func instanceChanged() builder.Predicates {
	moved := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.(*v1beta1.Bind9Instance).Status.ServiceAddress != e.ObjectNew.(*v1beta1.Bind9Instance).Status.ServiceAddress
	}}
	return builder.WithPredicates(predicate.Or[client.Object](moved,
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
}

// podChanged passes what tells that a pod's named may have started, moved or gone, or that its Service leads to it now.
func podChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Status.PodIP != after.Status.PodIP || before.Status.Phase != after.Status.Phase ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			status.PodReady(before) != status.PodReady(after) ||
			!maps.Equal(runningContainers(before), runningContainers(after))
	}})
}

// runningContainers maps the containers that have started to how often they did.
func runningContainers(pod *corev1.Pod) map[string]int32 {
	running := map[string]int32{}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			running[c.Name] = c.RestartCount + 1
		}
	}
	return running
}

// zonesOfRecord are the zones that a record concerns: the one that selects it and the one that holds data of it. A record
// that concerns none is an orphan of its namespace. Both forms of an updated record are mapped, so what a record leaves
// wakes as well as what it joins.
func (r *zoneReconciler) zonesOfRecord(ctx context.Context, o client.Object) []reconcile.Request {
	record := o.(v1beta1.Record)
	zones, err := r.zones(ctx, record.GetNamespace())
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	if zone := source.ZoneOf(zones, record); zone != nil {
		requests = append(requests, requestFor(zone))
	}
	if zone := holderOf(record, zones); zone != nil {
		requests = append(requests, requestFor(zone))
	}
	if len(requests) == 0 {
		requests = append(requests, orphansOf(record))
	}
	return requests
}

// zonesOfZone are the zone itself, the orphans of its namespace, which its selector may adopt, and the zones of the same
// name, one of which may follow a duplicate that is gone.
func (r *zoneReconciler) zonesOfZone(ctx context.Context, o client.Object) []reconcile.Request {
	requests := []reconcile.Request{requestFor(o), orphansOf(o)}
	namesakes, err := r.namesakes(ctx, o.(*v1beta1.DNSZone))
	if err != nil {
		return requests
	}
	for _, other := range namesakes {
		if other.UID != o.GetUID() {
			requests = append(requests, requestFor(other))
		}
	}
	return requests
}

// orphansOf asks for the records of a namespace that no zone selects.
func orphansOf(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace()}}
}

func (r *zoneReconciler) zonesOfInstance(ctx context.Context, o client.Object) []reconcile.Request {
	return r.zonesServedBy(ctx, o.(*v1beta1.Bind9Instance))
}

func (r *zoneReconciler) zonesOfPod(ctx context.Context, o client.Object) []reconcile.Request {
	instance := &v1beta1.Bind9Instance{}
	key := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[named.LabelInstance]}
	if err := r.client.Get(ctx, key, instance); err != nil {
		return nil
	}
	return r.zonesServedBy(ctx, instance)
}

// zonesServedBy are the zones that an instance serves, and those whose status says that it did.
func (r *zoneReconciler) zonesServedBy(ctx context.Context, instance *v1beta1.Bind9Instance) []reconcile.Request {
	zones, err := r.zones(ctx, "")
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, zone := range zones {
		served := len(source.InstancesOf(zone, []*v1beta1.Bind9Instance{instance})) > 0
		told := slices.ContainsFunc(zone.Status.Bind9Instances, func(i v1beta1.ZoneInstance) bool {
			return i.Namespace == instance.Namespace && i.Name == instance.Name
		})
		if served || told {
			requests = append(requests, requestFor(zone))
		}
	}
	return requests
}
