package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
	sources "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// SetupInstance adds the reconciler of instances. It runs when an instance or its cluster is changed by a user, when
// what it is made of changes, when its pods do, and when zones come and go.
func SetupInstance(mgr ctrl.Manager, deps Deps) error {
	r := &instanceReconciler{
		client: mgr.GetClient(), deps: deps, applier: &applier{client: mgr.GetClient()},
		keys: deps.keys, events: mgr.GetEventRecorder("lockstep-controller"), now: time.Now,
		authority: deps.authority,
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("bind9instance").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		For(&v1beta1.Bind9Instance{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionStarted()))).
		Owns(&corev1.Service{}).
		Owns(&appsv1.StatefulSet{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(instanceOfPod), builder.WithPredicates(podStateChanged())).
		Watches(&v1beta1.DNSZone{}, soon(r.instancesOfZone), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, deletionStarted()))).
		WatchesRawSource(sources.Channel[client.Object](deps.Provisioned, soon(itself)))
	for _, empty := range clusterKinds {
		b = b.Watches(empty(), handler.EnqueueRequestsFromMapFunc(r.instancesOfCluster), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.Complete(r)
}

// gathering is how long events about zones are gathered into one pass over an instance.
const gathering = 100 * time.Millisecond

// soon enqueues what an object maps to after a moment, so that a thousand zones do not cause a thousand passes.
func soon(find func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, o := range objects {
			for _, request := range find(ctx, o) {
				q.AddAfter(request, gathering)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, q, e.Object) },
	}
}

func itself(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(o)}
}

func instanceOfPod(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[named.LabelInstance]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// instancesOfZone are those that serve the zone.
func (r *instanceReconciler) instancesOfZone(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1beta1.Bind9InstanceList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, i := range membership.InstancesOf(o.(*v1beta1.DNSZone), pointers(list.Items)) {
		requests = append(requests, requestFor(i))
	}
	return requests
}

// instancesOfCluster are those that name the cluster, whoever made them.
func (r *instanceReconciler) instancesOfCluster(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1beta1.Bind9InstanceList
	c := asCluster(o, r.deps.Namespace)
	if err := r.client.List(ctx, &list, client.InNamespace(c.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, i := range pointers(list.Items) {
		if i.Spec.ClusterRef == c.GetName() {
			requests = append(requests, requestFor(i))
		}
	}
	return requests
}

// podStateChanged passes what an instance's status tells of its pods; the gate's own condition is not part of it, what
// the kubelet makes of it is.
func podStateChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Status.Phase != after.Status.Phase || before.Status.PodIP != after.Status.PodIP ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!maps.Equal(conditionsOf(before), conditionsOf(after)) || !slices.Equal(containersOf(before), containersOf(after))
	}}
}

type conditionState struct{ status, message string }

func conditionsOf(pod *corev1.Pod) map[corev1.PodConditionType]conditionState {
	out := map[corev1.PodConditionType]conditionState{}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled || c.Type == corev1.ContainersReady {
			out[c.Type] = conditionState{string(c.Status), c.Message}
		}
	}
	return out
}

type containerState struct {
	name, waiting  string
	restarts       int32
	running, ready bool
}

func containersOf(pod *corev1.Pod) []containerState {
	var out []containerState
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			state := containerState{name: c.Name, restarts: c.RestartCount, running: c.State.Running != nil, ready: c.Ready}
			if c.State.Waiting != nil {
				state.waiting = c.State.Waiting.Reason
			}
			out = append(out, state)
		}
	}
	return out
}
