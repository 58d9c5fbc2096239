package review

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
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
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return nil, err
	}
	for i := range zone.Spec.Bind9InstancesFrom {
		only := &v1beta1.DNSZone{ObjectMeta: zone.ObjectMeta}
		only.Spec.Bind9InstancesFrom = zone.Spec.Bind9InstancesFrom[i : i+1]
		if len(all.InstancesOf(only)) > 0 {
			continue
		}
		live := membership.NewFleet(membership.FleetObjects{Instances: r.objects.liveInstances(ctx, &only.Spec.Bind9InstancesFrom[0].Selector)}, "")
		if len(live.InstancesOf(only)) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s: selects no Bind9Instance; for one of another namespace, the zone needs annotation %s with that namespace, and the instance annotation %s",
				spec.Child("bind9InstancesFrom").Index(i).Child("selector"), v1beta1.AllowInstanceNamespacesAnnotation, v1beta1.AllowZoneNamespacesAnnotation))
		}
	}
	return append(warnings, r.warnProviders(ctx, zone, all)...), nil
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

// instanceReviewer judges instances: whether the cluster is there that they name, and that they do not claim an owner.
type instanceReviewer struct {
	objects Objects
}

func (r instanceReviewer) review(ctx context.Context, instance, _ *v1beta1.Bind9Instance) (Result, error) {
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return Result{}, err
	}
	if n := all.ForgedOwner(instance); n >= 0 {
		if live := r.objects.liveFleet(ctx); live == nil || live.ForgedOwner(instance) >= 0 {
			owner := instance.OwnerReferences[n]
			return Result{Problems: field.ErrorList{field.Forbidden(field.NewPath("metadata", "ownerReferences").Index(n), fmt.Sprintf(
				"%s %s does not own this instance: its instances are made by Lockstep, in a namespace of those who run it; remove the reference", owner.Kind, owner.Name))}}, nil
		}
	}
	warnings, err := warnMissingCluster(ctx, r.objects, instance.Namespace, instance.Spec.ClusterRef, "the instance has no server")
	return Result{Warnings: warnings}, err
}
