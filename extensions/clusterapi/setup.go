// Package clusterapi serves Cluster API (cluster.x-k8s.io): it publishes the endpoints of control planes as DNSEndpoints, which take the way
// of all others, shows on Clusters whether their names are live, and keeps the status of CAPTClusters and CAPTControlPlanes. It makes
// no infrastructure. What a status says is decided in pkg/declared/status.
package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

const (
	// installInterval is how often it is checked whether Cluster API has been installed.
	installInterval = 5 * time.Second
	// firstRetry and lastRetry bound the backoff after an error.
	firstRetry, lastRetry = time.Second, time.Minute
	// workers is how many objects of a kind are worked on at a time: mostly they wait for the API server.
	workers = 8
)

// AddToScheme adds the kinds that this package reads and writes to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(infrastructure.AddToScheme(scheme), controlplane.AddToScheme(scheme), syncv1.AddToScheme(scheme))
}

// Feature is the gate of everything here, which is off by default.
const Feature featuregate.Feature = "ClusterAPI"

// Extension publishes the endpoints of Cluster API's clusters from the controller's process.
type Extension struct {
	// enabled is --cluster-api, which turns Feature on as --feature-gates does.
	enabled  bool
	features featuregate.FeatureGate
	timeouts status.CAPTTimeouts
}

// AddFeatures adds Feature.
func (e *Extension) AddFeatures(gate featuregate.MutableFeatureGate) error {
	e.features = gate
	return gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{Feature: {PreRelease: featuregate.Beta}})
}

// AddFlags registers the flag that turns it on.
func (e *Extension) AddFlags(fs *pflag.FlagSet) {
	e.timeouts = status.DefaultCAPTTimeouts()
	fs.DurationVar(&e.timeouts.VPC, "cluster-api-vpc-timeout", e.timeouts.VPC, "how long a CAPTCluster may wait for its workspace, and a CAPTControlPlane for its network, before it is Failed with ProgressDeadlineExceeded")
	fs.DurationVar(&e.timeouts.Secret, "cluster-api-secret-timeout", e.timeouts.Secret, "how long a CAPTCluster may wait for its connection Secret before it is Failed with ProgressDeadlineExceeded")
	fs.DurationVar(&e.timeouts.ControlPlane, "cluster-api-control-plane-timeout", e.timeouts.ControlPlane, "how long a CAPTControlPlane may wait for its workspace, and both kinds for their name, before they are Failed with ProgressDeadlineExceeded")
	fs.BoolVar(&e.enabled, "cluster-api", e.enabled, "publish the control plane endpoints of Cluster API's clusters, and keep the status of CAPTClusters and CAPTControlPlanes; the same as --feature-gates=ClusterAPI=true; needs the rights of the component cluster-api")
}

// Validate names every flag that is wrong.
func (e *Extension) Validate() error {
	var errs []error
	for flag, value := range map[string]time.Duration{"vpc": e.timeouts.VPC, "secret": e.timeouts.Secret, "control-plane": e.timeouts.ControlPlane} {
		if value < time.Second {
			errs = append(errs, fmt.Errorf("--cluster-api-%s-timeout=%s: must be at least 1s", flag, value))
		}
	}
	return errors.Join(errs...)
}

func (e *Extension) isEnabled() bool { return e.enabled || e.features.Enabled(Feature) }

// Setup has the reconcilers start once Cluster API is installed, if the gate is open.
func (e *Extension) Setup(mgr ctrl.Manager) error {
	if !e.isEnabled() {
		return nil
	}
	return errors.Join(AddToScheme(mgr.GetScheme()), mgr.Add(starter{mgr, e.timeouts}))
}

// starter adds the reconcilers to its manager once Cluster API is installed.
type starter struct {
	manager  ctrl.Manager
	timeouts status.CAPTTimeouts
}

// Start implements manager.Runnable. It ends when the reconcilers run.
func (s starter) Start(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx).WithName("cluster-api")
	waiting := false
	return wait.PollUntilContextCancel(ctx, installInterval, true, func(context.Context) (bool, error) {
		found, missing, err := findClusters(s.manager.GetRESTMapper())
		switch {
		case err != nil:
			log.Error(err, "Looking for Cluster API")
			return false, nil
		case missing != "" && !waiting:
			waiting = true
			log.Info("Waiting for a definition to be installed", "kind", missing)
			return false, nil
		case missing != "":
			return false, nil
		}
		log.Info("Serving Cluster API", "version", found.Version)
		return true, setupReconcilers(s.manager, found, s.timeouts)
	})
}

// findClusters returns the kind of Clusters in the version that kube-apiserver prefers, or what is not installed. An error may pass.
func findClusters(mapper meta.RESTMapper) (kind schema.GroupVersionKind, missing string, err error) {
	for _, wanted := range []schema.GroupKind{infrastructureKind.GroupKind(), controlPlaneKind.GroupKind(), {Group: clusterGroup, Kind: clusterName}} {
		mapping, err := mapper.RESTMapping(wanted)
		switch {
		case meta.IsNoMatchError(err):
			return kind, wanted.String(), nil
		case err != nil:
			return kind, "", fmt.Errorf("looking for %s: %w", wanted, err)
		}
		kind = mapping.GroupVersionKind
	}
	return kind, "", nil
}

// setupReconcilers adds the reconcilers of the three kinds.
func setupReconcilers(mgr ctrl.Manager, kind schema.GroupVersionKind, timeouts status.CAPTTimeouts) error {
	c := mgr.GetClient()
	all := reconciler{client: c, live: mgr.GetAPIReader(), clusters: clusters{c, kind}, now: time.Now, timeouts: timeouts}
	all.names = &publisher{client: c, live: all.live, children: apply.NewChildren(c)}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(kind)
	options := func() controller.Options {
		return controller.Options{MaxConcurrentReconciles: workers, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)}
	}
	corrections := apply.NewCorrections(c)
	others := builder.WithPredicates(corrections.Others())
	owner := handler.EnqueueRequestsFromMapFunc(ownerRequests)
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("cluster-api-cluster").WithOptions(options()).For(cluster).
			Owns(&v1alpha1.DNSEndpoint{}).Watches(&infrastructure.CAPTCluster{}, owner).Watches(&controlplane.CAPTControlPlane{}, owner).
			Complete(&clusterReconciler{all}),
		ctrl.NewControllerManagedBy(mgr).Named("cluster-api-infrastructure").WithOptions(options()).For(&infrastructure.CAPTCluster{}, others).
			Watches(&infrastructure.CAPTCluster{}, corrections.Handler()).
			Owns(&v1alpha1.DNSEndpoint{}).Watches(cluster, handler.EnqueueRequestsFromMapFunc(all.infrastructureOf)).
			Complete(&infrastructureReconciler{all}),
		ctrl.NewControllerManagedBy(mgr).Named("cluster-api-control-plane").WithOptions(options()).For(&controlplane.CAPTControlPlane{}, others).
			Watches(&controlplane.CAPTControlPlane{}, corrections.Handler()).
			Owns(&v1alpha1.DNSEndpoint{}).Watches(cluster, handler.EnqueueRequestsFromMapFunc(all.controlPlanesOf)).
			Watches(&infrastructure.CAPTCluster{}, handler.EnqueueRequestsFromMapFunc(all.controlPlanesOf)).
			Complete(&controlPlaneReconciler{all}),
	)
}

// ownerRequests returns the Cluster that owns an object.
func ownerRequests(_ context.Context, o client.Object) []reconcile.Request {
	ref := ownerReference(o)
	if ref == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// infrastructureOf returns the CAPTClusters that a Cluster owns.
func (r *reconciler) infrastructureOf(ctx context.Context, cluster client.Object) (requests []reconcile.Request) {
	var list infrastructure.CAPTClusterList
	if err := r.client.List(ctx, &list, client.InNamespace(cluster.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache has ended.
	}
	for i := range list.Items {
		if ref := ownerReference(&list.Items[i]); ref != nil && ref.Name == cluster.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// controlPlanesOf returns the CAPTControlPlanes of a Cluster, or of the Cluster that owns a CAPTCluster.
func (r *reconciler) controlPlanesOf(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	name := o.GetName()
	if ref := ownerReference(o); ref != nil {
		name = ref.Name
	}
	var list controlplane.CAPTControlPlaneList
	if err := r.client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache has ended.
	}
	for i := range list.Items {
		if ref := ownerReference(&list.Items[i]); ref != nil && ref.Name == name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
