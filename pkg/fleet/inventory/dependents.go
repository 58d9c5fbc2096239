package inventory

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// AwaitDependents has servers stay at work, once they are deleted, until no zone depends on them any more; see
// v1beta1.DependentsFinalizer. servers are a cluster, or an instance without one. going is true when they are to be left to Kubernetes.
func AwaitDependents(ctx context.Context, c client.Client, systemNamespace string, servers client.Object) (going bool, err error) {
	marks := apply.Marks{AddFinalizers: []string{v1beta1.DependentsFinalizer}}
	switch {
	case v1beta1.IsGoing(servers):
		return true, nil
	case servers.GetDeletionTimestamp() != nil:
		if waits, err := hasDependents(ctx, c, systemNamespace, servers); waits || err != nil {
			return false, err
		}
		going, marks = true, apply.Marks{RemoveFinalizers: []string{v1beta1.DependentsFinalizer}}
	}
	next, err := apply.Metadata(ctx, c, servers, marks)
	if err != nil {
		return false, fmt.Errorf("changing what %s %s waits for: %w", kindOf(servers), servers.GetName(), err)
	}
	servers.SetFinalizers(next.GetFinalizers())
	servers.SetResourceVersion(next.GetResourceVersion())
	return going, nil
}

// hasDependents reports whether a zone would lose its servers, or is still to be deleted from them.
func hasDependents(ctx context.Context, c client.Client, systemNamespace string, servers client.Object) (bool, error) {
	if servers.GetAnnotations()[v1beta1.AllowDeletionAnnotation] == "true" {
		return false, nil
	}
	all, err := Read(ctx, c, systemNamespace)
	if err != nil {
		return false, err
	}
	zones, err := ListZones(ctx, c)
	if err != nil {
		return false, err
	}
	instances, err := ListLiveInstances(ctx, c)
	if err != nil {
		return false, err
	}
	elsewhere := false
	for _, z := range zones {
		switch {
		case v1beta1.IsGoing(z) && !controllerutil.ContainsFinalizer(z, v1beta1.Finalizer) || !depends(all, z, instances, servers):
		case servers.GetNamespace() == "" || servers.GetNamespace() == z.Namespace:
			return true, nil
		default:
			elsewhere = true
		}
	}
	if !elsewhere {
		return false, nil
	}
	// A namespace that is being deleted waits for no other one.
	ends, err := IsTerminating(ctx, c, servers.GetNamespace())
	return !ends, err
}

// depends reports whether a zone is on an instance of a cluster, or has no primary but an instance.
func depends(all *membership.Fleet, z *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance, servers metav1.Object) bool {
	instance, ok := servers.(*v1beta1.Bind9Instance)
	if !ok {
		return slices.ContainsFunc(instances, func(i *v1beta1.Bind9Instance) bool { return all.BelongsTo(i, servers) && all.Serves(i, z) })
	}
	return membership.IsLastPrimary(all, instance, z, instances)
}
