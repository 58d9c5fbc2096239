package instance

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/instance/podcheck"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// maxReconciliations is how many instances of a namespace are worked on at once.
const maxReconciliations = 4

// Options are what the reconciler of instances works with.
type Options struct {
	// SystemNamespace is the namespace that Lockstep itself runs in.
	SystemNamespace string
	// Images run in the pods of an instance that names no image of its own.
	Images   named.Images
	Timeouts inventory.Timeouts
	// Rights explain why servers cannot run in a namespace.
	Rights   inventory.NamespaceRights
	Children *apply.Children
	Keys     *keyrotation.Rotator
	// Authority issues the sidecars' certificates.
	Authority Authority
	// Bundles report that what the sidecars verify their callers with has changed.
	Bundles BundleChanges
	Sidecar podcheck.Sidecar
	DNS     podcheck.DNS
	// Wakeups start the reconciliation of instances after a step of the rotation of their keys.
	Wakeups inventory.InstanceWakeups
	// Confirmed gets the instances whose status was looked at.
	Confirmed *inventory.Confirmed
}

// Setup adds the reconciler of instances. It runs when an instance or its cluster is changed by a user, when what it is
// made of changes, when its pods do, and when zones come and go.
func Setup(mgr ctrl.Manager, o Options) error {
	c, transitions := mgr.GetClient(), apply.NewTransitions(mgr.GetEventRecorder(apply.FieldOwner), mgr.GetScheme())
	r := &reconciler{
		client: c, systemNamespace: o.SystemNamespace, timeouts: o.Timeouts, rights: o.Rights, confirmed: o.Confirmed, now: time.Now, workloads: newWorkloads(c, transitions, o),
		pods: podcheck.New(c, mgr.GetAPIReader(), o.SystemNamespace, o.Sidecar, o.DNS, o.Keys.Cache), status: &statusWriter{client: c, transitions: transitions},
	}
	turns := &inventory.Turns{Reconciler: r, PerNamespace: maxReconciliations}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("bind9instance").
		WithOptions(controller.Options{MaxConcurrentReconciles: turns.Workers()}).
		WatchesRawSource(turns).
		For(&v1beta1.Bind9Instance{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, inventory.DeletionStarted()))).
		Watches(&v1beta1.Bind9Instance{}, apply.NewCorrections(c).Handler()).
		Owns(&corev1.Service{}).
		Owns(&appsv1.StatefulSet{}).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(instanceOfEndpoints)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(instanceOfPod), builder.WithPredicates(podStateChanged())).
		Watches(&v1beta1.DNSZone{}, inventory.DebouncedBy(r.zones.debounce, r.instancesOfZone), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, inventory.DeletionStarted()))).
		Watches(&v1beta1.DNSZone{}, r.zones.arrived()).
		WatchesRawSource(sources.Channel[client.Object](o.Wakeups, inventory.Debounced(
			func(_ context.Context, o client.Object) []reconcile.Request {
				return []reconcile.Request{inventory.RequestFor(o)}
			}))).
		WatchesRawSource(sources.Channel[client.Object](o.Bundles, handler.EnqueueRequestsFromMapFunc(r.allInstances)))
	for _, child := range []client.Object{&corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		b = b.WatchesMetadata(child, handler.EnqueueRequestsFromMapFunc(r.instancesOfOwner), builder.WithPredicates(inventory.ChangedByOthers()))
	}
	for _, empty := range inventory.NewClusters {
		b = b.Watches(empty(), handler.EnqueueRequestsFromMapFunc(r.instancesOfCluster), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.Complete(turns)
}

// instanceOfEndpoints is the instance that has the name of the Service of an EndpointSlice.
func instanceOfEndpoints(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[discoveryv1.LabelServiceName]}}}
}

func instanceOfPod(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[serving.LabelInstance]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

func (r *reconciler) instancesOfZone(ctx context.Context, o client.Object) []reconcile.Request {
	all, err := inventory.Read(ctx, r.client, r.systemNamespace)
	if err != nil {
		return nil
	}
	return requestsFor(all.InstancesOf(o.(*v1beta1.DNSZone)))
}

// zoneCounts knows how many zones each instance had when it was checked last. It is safe for concurrent use.
type zoneCounts struct{ sync.Map }

// debounce is how long events about zones are gathered for one check of an instance.
func (c *zoneCounts) debounce(request reconcile.Request) time.Duration {
	zones, _ := c.Load(request.NamespacedName)
	count, _ := zones.(int)
	return inventory.DebounceFor(count)
}

// arrived enqueues the instances of which the status of a zone says now that they have it, or do not any more.
func (c *zoneCounts) arrived() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		before, after := zoneStates(e.ObjectOld), zoneStates(e.ObjectNew)
		for instance, state := range after {
			if before[instance] != state {
				request := reconcile.Request{NamespacedName: instance}
				q.AddAfter(request, c.debounce(request))
			}
		}
	}}
}

// zoneStates are the states of a zone on each of its instances.
func zoneStates(zone client.Object) map[client.ObjectKey]v1beta1.ZoneInstanceStatus {
	states := map[client.ObjectKey]v1beta1.ZoneInstanceStatus{}
	for _, i := range zone.(*v1beta1.DNSZone).Status.Bind9Instances {
		states[client.ObjectKey{Namespace: i.Namespace, Name: i.Name}] = i.Status
	}
	return states
}

func (r *reconciler) allInstances(ctx context.Context, _ client.Object) []reconcile.Request {
	all, _ := inventory.ListInstances(ctx, r.client)
	return requestsFor(all)
}

// instancesOfCluster are the instances that name the cluster, whoever made them.
func (r *reconciler) instancesOfCluster(ctx context.Context, o client.Object) []reconcile.Request {
	c := inventory.AsCluster(o, r.systemNamespace)
	return r.instancesNaming(ctx, c.Namespace, c.GetName())
}

// instancesOfOwner are the instance that a child belongs to, or those that share it because it is their cluster's.
func (r *reconciler) instancesOfOwner(ctx context.Context, child client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(child)
	switch {
	case owner == nil:
		return nil
	case owner.Kind == inventory.InstanceKind.Kind:
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: child.GetNamespace(), Name: owner.Name}}}
	}
	return r.instancesNaming(ctx, child.GetNamespace(), owner.Name)
}

func (r *reconciler) instancesNaming(ctx context.Context, namespace, cluster string) []reconcile.Request {
	all, _ := inventory.ListInstances(ctx, r.client, client.InNamespace(namespace))
	return requestsFor(slices.DeleteFunc(all, func(i *v1beta1.Bind9Instance) bool { return i.Spec.ClusterRef != cluster }))
}

func requestsFor(instances []*v1beta1.Bind9Instance) []reconcile.Request {
	var requests []reconcile.Request
	for _, i := range instances {
		requests = append(requests, inventory.RequestFor(i))
	}
	return requests
}

// podStateChanged passes what an instance's status reports of its pods. The readiness gate's own condition is not part of
// that; what the kubelet makes of it is.
func podStateChanged() predicate.Predicate {
	reported := func(pod *corev1.Pod) []corev1.PodCondition {
		return slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool { return c.Type == v1beta1.ZonesLoadedGate })
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Status.Phase != after.Status.Phase || before.Status.PodIP != after.Status.PodIP || !maps.Equal(before.Labels, after.Labels) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(reported(before), reported(after)) ||
			!equality.Semantic.DeepEqual(before.Status.InitContainerStatuses, after.Status.InitContainerStatuses) ||
			!equality.Semantic.DeepEqual(before.Status.ContainerStatuses, after.Status.ContainerStatuses)
	}}
}
