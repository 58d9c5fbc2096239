package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// Pauses before a zone is looked at again without an event. Events decide when a change goes out; these only find
// what no event tells: a server that came up late, a transfer that got lost, an update that was refused. A zone that is
// not in step is looked at soon, and less and less often.
const (
	firstPause  = 250 * time.Millisecond
	refusePause = time.Minute
	idlePause   = 5 * time.Minute
)

// zoneReconciler brings one zone at a time to its servers: the records that the zone selects are gathered, turned into
// the desired content, compared with what every primary holds, and applied; the secondaries are told to follow.
type zoneReconciler struct {
	client   client.Client
	deps     Deps
	provider *rfc2136.Provider
	keys     *keyring
	records  *syncevent.Records
	notifier syncevent.Notifier
	backoff  workqueue.TypedRateLimiter[ctrl.Request]
	now      func() time.Time
}

// Reconcile implements reconcile.Reconciler. A request without a name is for the records of a namespace that no zone
// selects.
func (r *zoneReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" {
		return ctrl.Result{}, r.releaseOrphans(ctx, req.Namespace)
	}
	zone := &v1beta1.DNSZone{}
	if err := r.client.Get(ctx, req.NamespacedName, zone); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, r.releaseOrphans(ctx, req.Namespace)
	}
	members, err := r.gather(ctx, zone)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("gathering zone %s: %w", req, err)
	}
	if !zone.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, zone, members)
	}
	markErr := r.mark(ctx, zone, &members)
	if markErr != nil && !controllerutil.ContainsFinalizer(zone, v1beta1.Finalizer) {
		return ctrl.Result{}, markErr
	}
	pass := newPass(r, zone, members)
	event := pass.run(ctx)
	r.wake(members.instances)
	log.FromContext(ctx).Info("zone reconciled", "zone", zone.Spec.ZoneName, "serial", event.Serial,
		"changed", event.Changes.Len(), "records", len(members.selected), "problem", problemOf(event))
	if err := errors.Join(markErr, r.notifier.Notify(ctx, event)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.pause(req, event)}, nil
}

func problemOf(e syncevent.SyncCompleted) string {
	if e.Problem.Holds() {
		return ""
	}
	return e.Problem.Message
}

// pause is how long the zone may rest if nothing happens.
func (r *zoneReconciler) pause(req ctrl.Request, e syncevent.SyncCompleted) time.Duration {
	for _, s := range e.Servers {
		// A pod without an address has nothing to be asked; an event tells when it gets one.
		if s.Addr.IsValid() && !s.Current {
			return r.backoff.When(req)
		}
	}
	r.backoff.Forget(req)
	if len(e.Unprogrammed) > 0 {
		return refusePause
	}
	return idlePause
}

// members are the objects that make up a zone at one moment, read from the cache.
type members struct {
	// selected are the live records that the zone selects, leaving those that it published and no longer may.
	selected, leaving []v1beta1.Record
	// contested are records that the zone selects and another zone has still to let go of.
	contested []v1beta1.Record
	instances []*v1beta1.Bind9Instance
	servers   []observe.Server
	// duplicateOf is the older zone that has the same name on the same servers; nil if there is none.
	duplicateOf *v1beta1.DNSZone
}

func (r *zoneReconciler) gather(ctx context.Context, zone *v1beta1.DNSZone) (members, error) {
	zones, err := r.zones(ctx, zone.Namespace)
	if err != nil {
		return members{}, err
	}
	m, err := r.zoneRecords(ctx, zone, zones)
	if err != nil {
		return m, err
	}
	all, err := r.listInstances(ctx)
	if err != nil {
		return m, err
	}
	m.instances = source.InstancesOf(zone, all)
	namesakes, err := r.namesakes(ctx, zone)
	if err != nil {
		return m, err
	}
	m.duplicateOf = source.Duplicate(zone, namesakes, all)
	m.servers, err = r.listServers(ctx, m.instances)
	return m, err
}

// zoneNameField indexes the zones of the cache by their DNS name.
const zoneNameField = "spec.zoneName"

// namesakes lists the zones of all namespaces that have the DNS name of the given one, itself included.
func (r *zoneReconciler) namesakes(ctx context.Context, zone *v1beta1.DNSZone) ([]*v1beta1.DNSZone, error) {
	var list v1beta1.DNSZoneList
	err := r.client.List(ctx, &list, client.MatchingFields{zoneNameField: source.DNSName(zone)}, client.UnsafeDisableDeepCopy)
	return pointers(list.Items), err
}

// zones lists the zones of a namespace, or of all with "".
func (r *zoneReconciler) zones(ctx context.Context, namespace string) ([]*v1beta1.DNSZone, error) {
	var list v1beta1.DNSZoneList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// listInstances lists all instances that are there to stay.
func (r *zoneReconciler) listInstances(ctx context.Context) ([]*v1beta1.Bind9Instance, error) {
	var list v1beta1.Bind9InstanceList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	live := make([]*v1beta1.Bind9Instance, 0, len(list.Items))
	for _, i := range pointers(list.Items) {
		if i.DeletionTimestamp.IsZero() {
			live = append(live, i)
		}
	}
	return live, nil
}

func (r *zoneReconciler) listServers(ctx context.Context, instances []*v1beta1.Bind9Instance) ([]observe.Server, error) {
	var pods []*corev1.Pod
	seen := map[string]bool{}
	for _, i := range instances {
		if seen[i.Namespace] {
			continue
		}
		seen[i.Namespace] = true
		var list corev1.PodList
		if err := r.client.List(ctx, &list, client.InNamespace(i.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		pods = append(pods, pointers(list.Items)...)
	}
	return observe.Servers(instances, pods), nil
}

// zoneRecords splits the records of a zone into those that it selects now and those that have to leave: deleted ones,
// and ones that it published earlier and selects no longer. A record that another zone still holds data of is contested:
// it becomes ours once that zone has let go of it.
func (r *zoneReconciler) zoneRecords(ctx context.Context, zone *v1beta1.DNSZone, zones []*v1beta1.DNSZone) (m members, err error) {
	err = r.eachRecord(ctx, zone.Namespace, func(record v1beta1.Record) {
		selects := isZone(source.ZoneOf(zones, record), zone)
		holder := holderOf(record, zones)
		switch {
		case selects && holder != nil && !isZone(holder, zone):
			m.contested = append(m.contested, record)
		case selects && record.GetDeletionTimestamp().IsZero():
			m.selected = append(m.selected, record)
		case isZone(holder, zone):
			m.leaving = append(m.leaving, record)
		}
	})
	return m, err
}

func isZone(candidate, zone *v1beta1.DNSZone) bool {
	return candidate != nil && candidate.UID == zone.UID
}

// holderOf is the zone that may hold data of the record: its status names it or, when a crash kept the status from being
// written, its annotation does beside our finalizer. It is nil when none does.
func holderOf(record v1beta1.Record, zones []*v1beta1.DNSZone) *v1beta1.DNSZone {
	ref := record.GetRecordStatus().ZoneRef
	marked := controllerutil.ContainsFinalizer(record, v1beta1.Finalizer)
	for _, zone := range zones {
		switch {
		case ref != nil && ref.Name == zone.Name:
			return zone
		case ref == nil && marked && record.GetAnnotations()[v1beta1.ZoneAnnotation] == zone.Spec.ZoneName:
			return zone
		}
	}
	return nil
}

// eachRecord visits the records of all kinds in a namespace. They are the cache's own: not to be changed.
func (r *zoneReconciler) eachRecord(ctx context.Context, namespace string, visit func(v1beta1.Record)) error {
	for _, kind := range v1beta1.RecordKinds {
		list := kind.NewList()
		if err := r.client.List(ctx, list.(client.ObjectList), client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			visit(o.(v1beta1.Record))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// wake tells the instances' reconciler that zones may have arrived on their pods.
func (r *zoneReconciler) wake(instances []*v1beta1.Bind9Instance) {
	for _, i := range instances {
		o := &v1beta1.Bind9Instance{}
		o.Namespace, o.Name = i.Namespace, i.Name
		select {
		case r.deps.Provisioned <- event.GenericEvent{Object: o}:
		default: // The channel is full of wake-ups already; the instance also wakes by its pods and zones.
		}
	}
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

func requestFor(o client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// noProblem is the verdict of a zone that is programmed.
func noProblem() status.Verdict { return status.Yes(status.ReconcileSucceeded, "") }
