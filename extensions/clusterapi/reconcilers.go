package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

var (
	infrastructureKind = infrastructure.GroupVersion.WithKind("CAPTCluster")
	controlPlaneKind   = controlplane.GroupVersion.WithKind("CAPTControlPlane")
)

// conditionOwner is the field manager of the one condition that is written to Clusters, whose status is others'.
const conditionOwner = "lockstep-cluster-api"

// reconciler is what the reconcilers of the three kinds have in common.
type reconciler struct {
	client   client.Client
	live     client.Reader
	clusters clusters
	names    *publisher
	now      func() time.Time
	timeouts status.CAPTTimeouts
}

// clusterReconciler publishes the endpoint of Clusters.
type clusterReconciler struct{ reconciler }

// Reconcile implements reconcile.Reconciler.
func (r *clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster, err := r.clusters.read(ctx, req.NamespacedName)
	if err != nil || cluster == nil || cluster.GetDeletionTimestamp() != nil || isPaused(cluster, cluster) {
		return ctrl.Result{}, err
	}
	endpoint, err := r.clusters.endpointOf(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	name, transient := r.names.publish(ctx, bearer{Object: cluster, kind: r.clusters.kind, cluster: cluster.GetName(), host: endpoint.Host})
	err = r.writeCondition(ctx, cluster, name)
	return ctrl.Result{RequeueAfter: name.Interval()}, errors.Join(transient, err)
}

// conditionsPath returns where a Cluster's conditions in the form of Kubernetes are.
func (c clusters) conditionsPath() []string {
	if c.kind.Version == "v1beta1" {
		return []string{"status", "v1beta2", "conditions"}
	}
	return []string{"status", "conditions"}
}

// writeCondition writes EndpointPropagated to a Cluster, or takes it away if no name is asked for. It leaves all else to others.
func (r *reconciler) writeCondition(ctx context.Context, cluster *unstructured.Unstructured, name status.PublishedName) error {
	path := r.clusters.conditionsPath()
	had, err := ownCondition(cluster, path)
	if err != nil {
		return err
	}
	var next []metav1.Condition
	if name.Interval() > 0 {
		next = append(next, had...)
		v := name.Verdict()
		status.Set(&next, status.EndpointPropagated, v, cluster.GetGeneration(), r.now())
	}
	if equality.Semantic.DeepEqual(had, next) {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(r.clusters.kind)
	u.SetNamespace(cluster.GetNamespace())
	u.SetName(cluster.GetName())
	u.SetUID(cluster.GetUID()) // An apply must not make a Cluster.
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Conditions []metav1.Condition `json:"conditions"`
	}{next})
	if err != nil {
		return fmt.Errorf("encoding a condition: %w", err)
	}
	if len(next) > 0 {
		if err := unstructured.SetNestedField(u.Object, fields["conditions"], path...); err != nil {
			return fmt.Errorf("encoding a condition: %w", err)
		}
	}
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(conditionOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing a condition of Cluster %s: %w", cluster.GetName(), err)
	}
	return nil
}

// ownCondition returns EndpointPropagated of a Cluster, none if it has none.
func ownCondition(cluster *unstructured.Unstructured, path []string) ([]metav1.Condition, error) {
	all, _, _ := unstructured.NestedSlice(cluster.Object, path...)
	for _, c := range all {
		if fields, ok := c.(map[string]any); ok && fields["type"] == status.EndpointPropagated {
			var condition metav1.Condition
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &condition); err != nil {
				return nil, fmt.Errorf("reading a condition of Cluster %s: %w", cluster.GetName(), err)
			}
			return []metav1.Condition{condition}, nil
		}
	}
	return nil, nil
}

// infrastructureReconciler keeps the status of CAPTClusters.
type infrastructureReconciler struct{ reconciler }

// Reconcile implements reconcile.Reconciler.
func (r *infrastructureReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &infrastructure.CAPTCluster{}
	cluster, err := r.readOwned(ctx, req.NamespacedName, o)
	if err != nil || cluster == nil {
		return ctrl.Result{}, err
	}
	endpoint := effectiveEndpoint(o.Spec.ControlPlaneEndpoint, cluster)
	facts := status.CAPTClusterFacts{
		Generation: o.Generation, Endpoint: formatEndpoint(endpoint), FailureDomains: o.Spec.FailureDomains,
		ListedDomains: r.clusters.kind.Version != "v1beta1", Timeouts: r.timeouts,
	}
	nameErr := r.lookAtName(ctx, cluster, bearer{o, infrastructureKind, cluster.GetName(), endpoint.Host}, &facts.Name)
	workspace, found, workspaceErr := r.readWorkspace(ctx, o, o.Spec.VPCWorkspaceName, "-vpc")
	facts.Workspace = found
	if workspace != nil {
		workspaceErr = readVPC(ctx, r.live, workspace, &facts)
	}
	next, again := status.CAPTCluster(o.Status, facts, r.now())
	if !equality.Semantic.DeepEqual(o.Status, next) {
		err = apply.Status(ctx, r.client, infrastructureKind, o, &next)
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(err, nameErr, workspaceErr)
}

// controlPlaneReconciler keeps the status of CAPTControlPlanes.
type controlPlaneReconciler struct{ reconciler }

// Reconcile implements reconcile.Reconciler.
func (r *controlPlaneReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &controlplane.CAPTControlPlane{}
	cluster, err := r.readOwned(ctx, req.NamespacedName, o)
	if err != nil || cluster == nil {
		return ctrl.Result{}, err
	}
	endpoint := effectiveEndpoint(o.Spec.ControlPlaneEndpoint, cluster)
	facts := status.CAPTControlPlaneFacts{Generation: o.Generation, Endpoint: formatEndpoint(endpoint), Version: o.Spec.Version, Timeouts: r.timeouts}
	if name, is := refersTo(cluster, "infrastructureRef", infrastructureKind); is {
		network := &infrastructure.CAPTCluster{}
		if err := r.clusters.readChild(ctx, cluster, name, network); err != nil {
			return ctrl.Result{}, err
		}
		facts.HasVPC, facts.VPC = true, verdictOf(network.Status.Conditions, status.VPCReady)
	}
	nameErr := r.lookAtName(ctx, cluster, bearer{o, controlPlaneKind, cluster.GetName(), endpoint.Host}, &facts.Name)
	_, found, workspaceErr := r.readWorkspace(ctx, o, o.Spec.WorkspaceName, "-control-plane")
	facts.Workspace = found
	next, again := status.CAPTControlPlane(o.Status, facts, r.now())
	if !equality.Semantic.DeepEqual(o.Status, next) {
		err = apply.Status(ctx, r.client, controlPlaneKind, o, &next)
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(err, nameErr, workspaceErr)
}

// readOwned reads an object, and returns the Cluster that owns it; nil if there is nothing to do.
func (r *reconciler) readOwned(ctx context.Context, key client.ObjectKey, o client.Object) (*unstructured.Unstructured, error) {
	if err := r.client.Get(ctx, key, o); err != nil || o.GetDeletionTimestamp() != nil {
		return nil, client.IgnoreNotFound(err)
	}
	cluster, err := r.clusters.ownerOf(ctx, o)
	if err != nil || cluster == nil || isPaused(cluster, o) {
		return nil, err
	}
	return cluster, nil
}

// lookAtName publishes the name of an object, and takes its own back if the Cluster's is the one that counts.
func (r *reconciler) lookAtName(ctx context.Context, cluster *unstructured.Unstructured, o bearer, name *status.PublishedName) error {
	by, err := r.clusters.bearerOf(ctx, cluster, o)
	if err != nil {
		name.Name, name.Unread = cluster.GetName(), err.Error()
		return err
	}
	if by.Object != o.Object {
		if _, err := r.names.publish(ctx, o); err != nil {
			return err
		}
	}
	*name, err = r.names.publish(ctx, by)
	return err
}

// readWorkspace reads the workspace that an object names, or the one with the object's name and a suffix.
func (r *reconciler) readWorkspace(ctx context.Context, o client.Object, name, suffix string) (*unstructured.Unstructured, status.Workspace, error) {
	if name == "" {
		name = o.GetName() + suffix
	}
	return readWorkspace(ctx, r.live, client.ObjectKey{Namespace: o.GetNamespace(), Name: name})
}
