package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// cluster is one of the three kinds that make instances. All have the same specification and status; two are
// cluster-scoped and say in which namespace their instances live.
type cluster struct {
	client.Object
	kind schema.GroupVersionKind
	// namespace of the instances and their keys.
	namespace string
	spec      *v1beta1.Bind9ClusterSpec
	status    *v1beta1.Bind9ClusterStatus
}

// asCluster sees an object of one of the three kinds as a cluster. Cluster-scoped ones without a namespace use home.
func asCluster(o client.Object, home string) cluster {
	namespace := membership.InstanceNamespace(o, home)
	switch o := o.(type) {
	case *v1beta1.Bind9Cluster:
		return cluster{o, v1beta1.GroupVersion.WithKind("Bind9Cluster"), namespace, &o.Spec, &o.Status}
	case *v1beta1.Bind9GlobalCluster:
		return cluster{o, v1beta1.GroupVersion.WithKind("Bind9GlobalCluster"), namespace, &o.Spec.Bind9ClusterSpec, &o.Status}
	case *v1beta1.ClusterBind9Provider:
		return cluster{o, v1beta1.GroupVersion.WithKind("ClusterBind9Provider"), namespace, &o.Spec.Bind9ClusterSpec, &o.Status}
	}
	panic(fmt.Sprintf("%T is no cluster", o))
}

// keyOwner is the cluster as the owner of its instances' keys.
func (c cluster) keyOwner() keyOwner {
	return keyOwner{c, c.kind, c.namespace, named.ClusterKeys(c.spec), map[string]string{v1beta1.ClusterLabel: c.GetName()}}
}

// global tells whether zones of every namespace may use the cluster.
func (c cluster) global() bool { return c.GetNamespace() == "" }

// reference makes the cluster the owner of an object; nil when there is no cluster.
func (c cluster) reference() *metav1ac.OwnerReferenceApplyConfiguration {
	if c.Object == nil {
		return nil
	}
	return named.OwnerReference(c.kind.GroupVersion().String(), c.kind.Kind, c)
}

// clusterKinds makes an empty object of each kind of cluster.
var clusterKinds = []func() client.Object{
	func() client.Object { return &v1beta1.Bind9Cluster{} },
	func() client.Object { return &v1beta1.Bind9GlobalCluster{} },
	func() client.Object { return &v1beta1.ClusterBind9Provider{} },
}

// problemPause is how soon a cluster or instance is looked at again that lacks something no event tells of: a namespace,
// a Secret.
const problemPause = 10 * time.Second

// clusterReconciler makes the instances and keys of the clusters of one kind, and sums up their status.
type clusterReconciler struct {
	client  client.Client
	deps    Deps
	applier *applier
	empty   func() client.Object
	now     func() time.Time
	pace    *pace
}

// SetupCluster adds a reconciler for each kind of cluster. It runs when a cluster's specification changes, and when one
// of its instances changes in what a cluster's status tells.
func SetupCluster(mgr ctrl.Manager, deps Deps) error {
	var problems []error
	for _, empty := range clusterKinds {
		r := &clusterReconciler{client: mgr.GetClient(), deps: deps, applier: &applier{client: mgr.GetClient()}, empty: empty, now: time.Now, pace: &pace{}}
		o := empty()
		problems = append(problems, ctrl.NewControllerManagedBy(mgr).
			Named(strings.ToLower(asCluster(o, "").kind.Kind)).
			For(o, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, deletionStarted()))).
			Watches(&v1beta1.Bind9Instance{}, soon(ownerOf(asCluster(o, "").kind)),
				builder.WithPredicates(instanceStatusChanged())).
			Complete(r))
	}
	return errors.Join(problems...)
}

// ownerOf finds the cluster of a kind that controls an instance.
func ownerOf(kind schema.GroupVersionKind) func(context.Context, client.Object) []reconcile.Request {
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

// deletionStarted passes the update that marks an object as being deleted.
func deletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
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
func (r *clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	c := asCluster(o, r.deps.Namespace)
	if !c.GetDeletionTimestamp().IsZero() {
		next := *c.status.DeepCopy()
		next.LifecycleStatus = status.Deleting(next.LifecycleStatus, r.now())
		return ctrl.Result{}, client.IgnoreNotFound(r.write(ctx, c, next))
	}
	facts := status.ClusterFacts{Generation: c.GetGeneration(), Problem: noProblem(), Timeout: r.deps.Timeouts.Instance}
	again, err := r.bringAbout(ctx, c, &facts)
	switch {
	case namespaceTerminates(err):
		return ctrl.Result{}, nil
	case errors.Is(err, named.ErrKey):
		facts.Problem, facts.Terminal = status.No(status.ConfigurationInvalid, err.Error()), true
	case apierrors.IsNotFound(err):
		facts.Problem, facts.Timeout = status.No(status.NotReady, err.Error()), r.deps.Timeouts.of(err)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reconciling %s %s: %w", c.kind.Kind, req, err)
	}
	result, err := r.report(ctx, c, facts)
	if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
		result.RequeueAfter = again
	}
	return result, err
}

// bringAbout makes keys and instances, deletes surplus instances, and finds the facts of the declared ones.
// again is when to look at the keys again.
func (r *clusterReconciler) bringAbout(ctx context.Context, c cluster, facts *status.ClusterFacts) (again time.Duration, err error) {
	again, changed, err := ensureKeys(ctx, r.applier, r.deps, c.keyOwner(), r.now())
	if err != nil {
		return 0, err
	}
	existing, err := r.instances(ctx, c)
	if err != nil {
		return 0, err
	}
	if changed {
		r.wakeInstances(existing)
	}
	for _, role := range []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary} {
		for index := range replicasOf(c.spec, role) {
			name := fmt.Sprintf("%s-%s-%d", c.GetName(), role, index)
			configuration, digest, err := r.instance(c, role, name, index)
			if err != nil {
				return 0, err
			}
			instance := existing[name]
			delete(existing, name)
			if err := r.applier.apply(ctx, configuration, digest, cachedOrNil(instance)); err != nil {
				return 0, err
			}
			facts.Instances = append(facts.Instances, status.ClusterInstance{Name: name, Instance: instance})
		}
	}
	for _, surplus := range existing {
		if !surplus.DeletionTimestamp.IsZero() {
			continue
		}
		log.FromContext(ctx).Info("deleting a surplus instance", "instance", surplus.Name)
		if err := r.client.Delete(ctx, surplus, client.Preconditions{UID: &surplus.UID}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("deleting instance %s: %w", surplus.Name, err)
		}
	}
	return again, nil
}

// cachedOrNil keeps a nil pointer from becoming an object: one that is missing has an empty UID.
func cachedOrNil(i *v1beta1.Bind9Instance) client.Object {
	if i == nil {
		return &v1beta1.Bind9Instance{}
	}
	return i
}

func replicasOf(spec *v1beta1.Bind9ClusterSpec, role v1beta1.ServerRole) int32 {
	config := spec.Primary
	if role == v1beta1.RoleSecondary {
		config = spec.Secondary
	}
	if config == nil {
		return 0
	}
	return ptr.Deref(config.Replicas, 1)
}

// instances are those that the cluster controls, by name.
func (r *clusterReconciler) instances(ctx context.Context, c cluster) (map[string]*v1beta1.Bind9Instance, error) {
	var list v1beta1.Bind9InstanceList
	if err := r.client.List(ctx, &list, client.InNamespace(c.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	owned := map[string]*v1beta1.Bind9Instance{}
	for _, i := range pointers(list.Items) {
		for _, owner := range i.OwnerReferences {
			if owner.UID == c.GetUID() {
				owned[i.Name] = i
			}
		}
	}
	return owned, nil
}

// instanceConfiguration is a Bind9Instance to apply.
type instanceConfiguration struct{ *unstructured.Unstructured }

func (instanceConfiguration) IsApplyConfiguration() {}

func (c instanceConfiguration) GetName() *string      { return ptr.To(c.Unstructured.GetName()) }
func (c instanceConfiguration) GetNamespace() *string { return ptr.To(c.Unstructured.GetNamespace()) }
func (c instanceConfiguration) GetKind() *string      { return ptr.To(c.Unstructured.GetKind()) }

// instance holds only what makes it this cluster's: its server takes all settings from the cluster itself.
func (r *clusterReconciler) instance(c cluster, role v1beta1.ServerRole, name string, index int32) (instanceConfiguration, string, error) {
	labels := map[string]any{}
	config := ptr.Deref(map[v1beta1.ServerRole]*v1beta1.RoleConfig{
		v1beta1.RolePrimary: c.spec.Primary, v1beta1.RoleSecondary: c.spec.Secondary}[role], v1beta1.RoleConfig{})
	for key, value := range config.Labels {
		labels[key] = value
	}
	for key, value := range map[string]string{
		named.LabelName: named.AppName, named.LabelInstance: name, named.LabelComponent: string(role), named.LabelPartOf: c.GetName(),
		named.LabelManagedBy: named.Manager, v1beta1.ManagedByLabel: c.kind.Kind, v1beta1.ClusterLabel: c.GetName(), v1beta1.RoleLabel: string(role),
	} {
		labels[key] = value
	}
	spec := map[string]any{"clusterRef": c.GetName(), "role": string(role), "replicas": int64(1)}
	if c.spec.Version != "" {
		spec["version"] = c.spec.Version
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(),
		"kind":       "Bind9Instance",
		"metadata": map[string]any{
			"namespace": c.namespace, "name": name, "labels": labels,
			"annotations": map[string]any{v1beta1.InstanceIndexAnnotation: strconv.Itoa(int(index))},
			"ownerReferences": []any{map[string]any{
				"apiVersion": c.kind.GroupVersion().String(), "kind": c.kind.Kind, "name": c.GetName(), "uid": string(c.GetUID()),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": spec,
	}}
	digest, err := digestOf(u)
	if err != nil {
		return instanceConfiguration{}, "", err
	}
	u.SetAnnotations(map[string]string{v1beta1.InstanceIndexAnnotation: strconv.Itoa(int(index)), appliedAnnotation: digest})
	return instanceConfiguration{u}, digest, nil
}

func (r *clusterReconciler) report(ctx context.Context, c cluster, facts status.ClusterFacts) (ctrl.Result, error) {
	next := status.Cluster(*c.status, facts, r.now())
	if c.global() {
		next = status.GlobalCluster(*c.status, facts, r.now())
	}
	if !equality.Semantic.DeepEqual(*c.status, next) {
		if wait := r.pace.wait(c.GetUID(), r.now(), statusPause); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		if err := r.write(ctx, c, next); err != nil {
			return ctrl.Result{}, err
		}
	}
	if !facts.Problem.Holds() {
		return ctrl.Result{RequeueAfter: problemPause}, nil
	}
	return ctrl.Result{RequeueAfter: status.UntilDeadline(next.LifecycleStatus, next.Conditions, facts.Timeout, r.now())}, nil
}

func (r *clusterReconciler) write(ctx context.Context, c cluster, next v1beta1.Bind9ClusterStatus) error {
	if equality.Semantic.DeepEqual(*c.status, next) {
		return nil
	}
	return syncevent.ApplyStatus(ctx, r.client, c.kind, c, &next)
}
