// Package instance holds the reconciler of Bind9Instances: it makes what an instance runs as, lets its pods into service
// once they serve every zone they should, removes zones that are not the instance's any more, and reports how the pods are.
// It adds no zone to a pod: that is the zone reconciler's.
package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/instance/podcheck"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// problemInterval is how soon an instance is reconciled again whose Secret has to be repaired, whose namespace has to be
// enrolled, or which finds an object of somebody else in a child's place: no event reports that.
const problemInterval = 10 * time.Second

// reconciler makes the workload of an instance, checks its pods and writes its status.
type reconciler struct {
	client          client.Client
	systemNamespace string
	timeouts        inventory.Timeouts
	rights          inventory.NamespaceRights
	workloads       *workloads
	pods            *podcheck.Checker
	status          *statusWriter
	zones           zoneCounts
	confirmed       *inventory.Confirmed
	now             func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	instance := &v1beta1.Bind9Instance{}
	if err := r.client.Get(ctx, req.NamespacedName, instance); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		r.zones.Delete(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	going, err := r.isGoing(ctx, instance)
	if err != nil {
		return ctrl.Result{}, err
	}
	if going {
		r.zones.Delete(req.NamespacedName)
		r.confirmed.Add(instance)
		return ctrl.Result{}, r.status.writeDeleting(ctx, instance, r.now())
	}
	facts, requeue, err := r.reconcileLive(ctx, instance)
	if apply.IsNamespaceTerminating(err) {
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reconciling instance %s: %w", req, err)
	}
	r.zones.Store(req.NamespacedName, len(facts.Zones))
	result, err := r.status.update(ctx, instance, facts, requeue, r.now())
	if err == nil {
		r.confirmed.Add(instance)
	}
	return result, err
}

// isGoing reports whether an instance is being deleted and waits for no zone. An instance of a cluster never waits: the cluster does, and
// decides what it needs.
func (r *reconciler) isGoing(ctx context.Context, instance *v1beta1.Bind9Instance) (bool, error) {
	if metav1.GetControllerOf(instance) != nil {
		return v1beta1.IsGoing(instance), nil
	}
	return inventory.AwaitDependents(ctx, r.client, r.systemNamespace, instance)
}

// reconcileLive brings an instance about and returns the facts for its status, and how soon to reconcile it again.
func (r *reconciler) reconcileLive(ctx context.Context, instance *v1beta1.Bind9Instance) (status.InstanceFacts, time.Duration, error) {
	facts := status.InstanceFacts{
		Generation: instance.Generation, Cluster: instance.Status.ClusterRef,
		Address: instance.Status.ServiceAddress, Addresses: instance.Status.ServiceAddresses, Exposed: instance.Status.ServiceExposed,
		NodePorts: instance.Status.ServiceNodePorts, MaxRecords: instance.Status.MaxRecordsPerType,
		ParentGeneration: instance.Status.ObservedParentGeneration,
		Configured:       status.True(status.ReconcileSucceeded, ""), Timeout: r.timeouts.Instance,
	}
	cluster, err := inventory.ClusterOf(ctx, r.client, instance, r.systemNamespace)
	switch name := instance.Spec.ClusterRef; {
	case err != nil:
		return facts, 0, err
	case cluster.Object != nil:
		facts.ParentGeneration = cluster.GetGeneration()
		facts.Cluster = &v1beta1.ClusterReference{
			APIVersion: cluster.Kind.GroupVersion().String(), Kind: cluster.Kind.Kind, Name: name, Namespace: cluster.GetNamespace(),
		}
	case name != "":
		facts.Configured = status.NoCluster(name, instance.Namespace)
		return facts, 0, r.pods.AddKnown(ctx, instance, &facts)
	default:
		facts.Cluster, facts.ParentGeneration = nil, 0
	}
	made, err := r.workloads.ensure(ctx, instance, cluster)
	err = r.rights.Explain(ctx, instance.Namespace, err)
	facts.KeyRotation = made.keyRotation
	if made.maxRecords > 0 {
		facts.MaxRecords = made.maxRecords
	}
	if made.service != nil {
		facts.Address, facts.Addresses, facts.Exposed = addressesOf(made.service, facts.Address)
		facts.NodePorts = nodePortsOf(made.service)
	}
	facts, retry, err := r.explain(facts, err)
	if err != nil {
		return facts, 0, err
	}
	if facts.Configured.Reason == status.NotEnrolled {
		return facts, retry, r.pods.AddKnown(ctx, instance, &facts)
	}
	requeue := inventory.Sooner(made.requeue, retry)
	checked, err := r.pods.Check(ctx, instance)
	facts.Zones, facts.Pods, facts.Failure = checked.Zones, checked.Pods, checked.Failure
	facts.Foreign = checked.Foreign
	for i := range facts.Pods {
		facts.Pods[i].ImageAdvice = made.imageAdvice
	}
	return facts, inventory.Sooner(requeue, checked.Requeue), err
}

// explain turns why a workload could not be made into the facts of a status, and returns how soon that may have changed; 0 for not before an
// event. An error that is none of the instance's comes back.
func (r *reconciler) explain(facts status.InstanceFacts, err error) (status.InstanceFacts, time.Duration, error) {
	switch {
	case errors.Is(err, inventory.ErrNotEnrolled):
		facts.Configured, facts.Terminal = status.False(status.NotEnrolled, err.Error()), true
		return facts, problemInterval, nil
	case apply.Predecessors(err) != "":
		facts.Configured = status.WaitingFor(apply.Predecessors(err))
		return facts, time.Second, nil
	case errors.Is(err, named.ErrKey), errors.Is(err, apply.ErrForeign):
		facts.Configured, facts.Terminal = status.False(status.ConfigurationInvalid, err.Error()), true
		return facts, problemInterval, nil
	case errors.Is(err, named.ErrConfig), apierrors.IsInvalid(err):
		facts.Configured, facts.Terminal = status.False(status.ConfigurationInvalid, err.Error()), true
		return facts, 0, nil
	case apierrors.IsNotFound(err):
		facts.Configured, facts.Timeout = status.False(status.NotReady, err.Error()), r.timeouts.For(err)
		return facts, time.Second, nil
	}
	return facts, 0, err
}
