package review

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
)

// missingReferences warns about servers that a zone names and that are not there. They may be still to come.
func (r zoneReviewer) missingReferences(ctx context.Context, zone *v1beta1.DNSZone) ([]string, error) {
	warnings, err := warnMissingCluster(ctx, r.objects, zone.Namespace, zone.Spec.ClusterRef, "the zone is on none of its servers")
	if err != nil {
		return nil, err
	}
	spec := field.NewPath("spec")
	if name := zone.Spec.ClusterProviderRef; name != "" {
		if known, err := r.objects.hasCluster(ctx, "", name); err != nil {
			return nil, err
		} else if !known && !r.objects.hasLiveCluster(ctx, "", name) {
			warnings = append(warnings, fmt.Sprintf("%s: there is no Bind9GlobalCluster or ClusterBind9Provider %s: the zone is on none of its servers until there is",
				spec.Child("clusterProviderRef"), name))
		}
	}
	instances, err := r.objects.instances(ctx)
	if err != nil {
		return nil, err
	}
	for i := range zone.Spec.Bind9InstancesFrom {
		only := &v1beta1.DNSZone{ObjectMeta: zone.ObjectMeta}
		only.Spec.Bind9InstancesFrom = zone.Spec.Bind9InstancesFrom[i : i+1]
		if len(membership.InstancesOf(only, instances)) == 0 &&
			len(membership.InstancesOf(only, r.objects.liveInstances(ctx, &only.Spec.Bind9InstancesFrom[0].Selector))) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s: selects no Bind9Instance; one of another namespace needs annotation %s",
				spec.Child("bind9InstancesFrom").Index(i).Child("selector"), v1beta1.AllowZoneNamespacesAnnotation))
		}
	}
	return warnings, nil
}

// warnMissingCluster warns about a clusterRef that names neither a cluster of the namespace nor a global one.
func warnMissingCluster(ctx context.Context, o Objects, namespace, name, so string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	places := []string{namespace, ""}
	for _, place := range places {
		if known, err := o.hasCluster(ctx, place, name); known || err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(places, func(place string) bool { return o.hasLiveCluster(ctx, place, name) }) {
		return nil, nil
	}
	return []string{fmt.Sprintf("spec.clusterRef: there is no Bind9Cluster %s in namespace %s, and no Bind9GlobalCluster or ClusterBind9Provider of that name: %s until there is",
		name, namespace, so)}, nil
}

// instanceReviewer judges instances: whether the cluster is there that they name.
type instanceReviewer struct {
	objects Objects
}

func (r instanceReviewer) review(ctx context.Context, instance, _ *v1beta1.Bind9Instance) (Result, error) {
	warnings, err := warnMissingCluster(ctx, r.objects, instance.Namespace, instance.Spec.ClusterRef, "the instance has no server")
	return Result{Warnings: warnings}, err
}
