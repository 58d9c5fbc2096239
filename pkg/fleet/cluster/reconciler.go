// Package cluster holds the reconciler of the three kinds of clusters: it makes their instances and TSIG keys, and sums up
// the instances' status.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// problemInterval is how soon a cluster is reconciled again that lacks something no event reports: a namespace, its enrollment, a Secret.
const problemInterval = 10 * time.Second

// movingInterval is how soon a cluster is reconciled again while something of former instances, or of a former cluster, is going.
const movingInterval = time.Second

// confirmationInterval is how soon a cluster is reconciled again that waits for the status of its instances to be confirmed.
const confirmationInterval = 500 * time.Millisecond

// Options are what the reconcilers of clusters work with.
type Options struct {
	// SystemNamespace is that of Lockstep, and of the instances of cluster-scoped clusters that name none.
	SystemNamespace string
	Timeouts        inventory.Timeouts
	// Rights explain why servers cannot run in a namespace.
	Rights   inventory.NamespaceRights
	Children *apply.Children
	Keys     *keyrotation.Rotator
	// Instances are woken after a step of the rotation of their keys.
	Instances inventory.InstanceWakeups
	// Confirmed are the instances whose status counts.
	Confirmed *inventory.Confirmed
}

// reconciler makes the instances and keys of the clusters of one kind, and sums up their status.
type reconciler struct {
	Options
	client  client.Client
	empty   func() client.Object
	now     func() time.Time
	limiter apply.StatusLimiter
	// transitions makes Events; nil makes none.
	transitions *apply.Transitions
}

// Setup adds a reconciler for each kind of cluster. It runs when a cluster's specification changes, and when one of its
// instances changes in what a cluster's status repeats.
func Setup(mgr ctrl.Manager, options Options) error {
	var problems []error
	for _, empty := range inventory.NewClusters {
		r := &reconciler{Options: options, client: mgr.GetClient(), empty: empty, now: time.Now, transitions: apply.NewTransitions(mgr.GetEventRecorder(apply.FieldOwner), mgr.GetScheme())}
		o := empty()
		kind := inventory.AsCluster(o, "").Kind
		keyReaders := handler.EnqueueRequestsFromMapFunc(controllerOf(kind))
		turns := &inventory.Turns{Reconciler: r, PerNamespace: 1}
		problems = append(problems, ctrl.NewControllerManagedBy(mgr).
			Named(strings.ToLower(kind.Kind)).
			WithOptions(controller.Options{MaxConcurrentReconciles: turns.Workers()}).
			WatchesRawSource(turns).
			For(o, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, inventory.DeletionStarted()))).
			Watches(empty(), apply.NewCorrections(r.client).Handler()).
			Watches(&v1beta1.Bind9Instance{}, inventory.Debounced(clustersOf(kind)), builder.WithPredicates(instanceStatusChanged())).
			WatchesMetadata(&rbacv1.Role{}, keyReaders, builder.WithPredicates(inventory.ChangedByOthers())).
			WatchesMetadata(&rbacv1.RoleBinding{}, keyReaders, builder.WithPredicates(inventory.ChangedByOthers())).
			Complete(turns))
	}
	return errors.Join(problems...)
}

// clustersOf finds the clusters of a kind that an instance is one of: the one that controls it, and the one that it names.
func clustersOf(kind schema.GroupVersionKind) func(context.Context, client.Object) []reconcile.Request {
	controller := controllerOf(kind)
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		requests := controller(ctx, o)
		if named := o.(*v1beta1.Bind9Instance).Spec.ClusterRef; named != "" && kind.Kind == "Bind9Cluster" && len(requests) == 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: named}})
		}
		return requests
	}
}

// controllerOf finds the cluster of a kind that controls an object.
func controllerOf(kind schema.GroupVersionKind) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != kind.Kind || owner.APIVersion != kind.GroupVersion().String() {
			return nil
		}
		request := reconcile.Request{}
		if request.Name = owner.Name; kind.Kind == "Bind9Cluster" {
			request.Namespace = o.GetNamespace()
		}
		return []reconcile.Request{request}
	}
}

// instanceStatusChanged passes what a cluster's status repeats of its instances.
func instanceStatusChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.Bind9Instance), e.ObjectNew.(*v1beta1.Bind9Instance)
		return before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(before.Status.LifecycleStatus, after.Status.LifecycleStatus) ||
			before.Status.Replicas != after.Status.Replicas || before.Status.ReadyReplicas != after.Status.ReadyReplicas ||
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	}}
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	c := inventory.AsCluster(o, r.SystemNamespace)
	going, err := inventory.AwaitDependents(ctx, r.client, r.SystemNamespace, c.Object)
	if err != nil {
		return ctrl.Result{}, err
	}
	if going {
		next := *c.Status.DeepCopy()
		next.LifecycleStatus = status.Deleting(next.LifecycleStatus, r.now())
		if equality.Semantic.DeepEqual(*c.Status, next) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(apply.Status(ctx, r.client, c.Kind, c, &next))
	}
	owned, facts, err := r.readInstances(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	requeue, err := r.ensureKeysAndInstances(ctx, c, owned)
	if c.GetDeletionTimestamp() != nil {
		requeue = inventory.Sooner(requeue, movingInterval)
	}
	err = r.Rights.Explain(ctx, c.Namespace, err)
	switch {
	case apply.IsNamespaceTerminating(err):
		return ctrl.Result{}, nil
	case apply.Predecessors(err) != "":
		facts.Configured = status.WaitingFor(apply.Predecessors(err))
		requeue = movingInterval
	case errors.Is(err, inventory.ErrNotEnrolled):
		facts.Configured, facts.Terminal = status.False(status.NotEnrolled, err.Error()), true
	case errors.Is(err, named.ErrKey), errors.Is(err, named.ErrConfig), errors.Is(err, apply.ErrForeign):
		facts.Configured, facts.Terminal = status.False(status.ConfigurationInvalid, err.Error()), true
	case apierrors.IsNotFound(err):
		facts.Configured, facts.Timeout = status.False(status.NotReady, err.Error()), r.Timeouts.For(err)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reconciling %s %s: %w", c.Kind.Kind, req, err)
	}
	if slices.ContainsFunc(facts.Instances, func(i status.ClusterInstance) bool {
		return i.Instance != nil && r.Confirmed.Awaits(i.Instance, r.now())
	}) {
		return ctrl.Result{RequeueAfter: confirmationInterval}, nil
	}
	result, err := r.updateStatus(ctx, c, facts)
	result.RequeueAfter = inventory.Sooner(inventory.Sooner(result.RequeueAfter, requeue), inventory.CheckInterval(ctx, r.client, 0))
	return result, err
}

// ensureKeysAndInstances makes keys and instances, and deletes surplus instances. owned are those that there are. It returns
// when to check again.
func (r *reconciler) ensureKeysAndInstances(ctx context.Context, c inventory.Cluster, owned map[string]*v1beta1.Bind9Instance) (requeue time.Duration, err error) {
	if err := inventory.CheckReadable(c.Object); err != nil {
		return 0, err
	}
	if err := apply.OutliveChildren(ctx, r.client, c.Kind, c.Object); err != nil {
		return 0, err
	}
	requeue, changed, err := r.Keys.Ensure(ctx, keyrotation.ClusterOwner(c), r.now())
	if err != nil {
		return 0, err
	}
	if changed {
		for _, i := range owned {
			r.Instances.Wake(i.Namespace, i.Name)
		}
	}
	surplus := maps.Clone(owned)
	for _, declared := range declaredInstances(c) {
		delete(surplus, declared.name)
		cached := cmp.Or(owned[declared.name], &v1beta1.Bind9Instance{})
		if err := r.Children.ApplyUnstructured(ctx, declared.configuration(c), cached); err != nil {
			return 0, err
		}
	}
	for _, i := range surplus {
		if !i.DeletionTimestamp.IsZero() {
			continue
		}
		log.FromContext(ctx).Info("deleting a surplus instance", "instance", i.Name)
		if err := r.client.Delete(ctx, i, client.Preconditions{UID: &i.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("deleting instance %s: %w", i.Name, err)
		}
	}
	return requeue, nil
}

func summaryOf(s v1beta1.Bind9ClusterStatus) apply.Summary {
	return apply.Summary{Conditions: s.Conditions, FailureReason: s.FailureReason, FailureMessage: s.FailureMessage}
}

func (r *reconciler) updateStatus(ctx context.Context, c inventory.Cluster, facts status.ClusterFacts) (ctrl.Result, error) {
	next := status.Cluster(*c.Status, facts, r.now())
	if c.IsGlobal() {
		next = status.GlobalCluster(*c.Status, facts, r.now())
	}
	if !equality.Semantic.DeepEqual(*c.Status, next) {
		if wait := r.limiter.Delay(c.GetUID(), r.now(), apply.StatusInterval); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		if err := apply.Status(ctx, r.client, c.Kind, c, &next); err != nil {
			return ctrl.Result{}, err
		}
		r.transitions.Record(c.Object, summaryOf(*c.Status), summaryOf(next))
	}
	if !facts.Configured.Holds() {
		return ctrl.Result{RequeueAfter: problemInterval}, nil
	}
	if len(facts.Leaving) > 0 {
		return ctrl.Result{RequeueAfter: movingInterval}, nil
	}
	return ctrl.Result{RequeueAfter: status.UntilDeadline(next.LifecycleStatus, next.Conditions, facts.Timeout, r.now())}, nil
}
