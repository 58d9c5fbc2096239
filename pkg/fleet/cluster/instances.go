package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// declaredInstance is one instance that a cluster declares.
type declaredInstance struct {
	name   string
	role   v1beta1.ServerRole
	index  int32
	labels map[string]string
}

// declaredInstances are the instances that a cluster declares, primaries first.
func declaredInstances(c inventory.Cluster) (all []declaredInstance) {
	for _, of := range []struct {
		role   v1beta1.ServerRole
		config *v1beta1.RoleConfig
	}{{v1beta1.RolePrimary, c.Spec.Primary}, {v1beta1.RoleSecondary, c.Spec.Secondary}} {
		if of.config == nil {
			continue
		}
		for index := range ptr.Deref(of.config.Replicas, 1) {
			all = append(all, declaredInstance{fmt.Sprintf("%s-%s-%d", c.GetName(), of.role, index), of.role, index, of.config.Labels})
		}
	}
	return all
}

// configuration has only what makes the instance this cluster's: its server takes all settings from the cluster itself.
func (d declaredInstance) configuration(c inventory.Cluster) *unstructured.Unstructured {
	labels := named.SelectorLabels(d.name)
	maps.Copy(labels, map[string]string{
		named.LabelComponent: named.ComponentServer, named.LabelPartOf: named.PartOf,
		v1beta1.ManagedByLabel: "Bind9Cluster", v1beta1.ClusterLabel: c.GetName(), v1beta1.RoleLabel: string(d.role),
	})
	maps.Copy(labels, d.labels) // Users select by what they have declared.
	spec := map[string]any{"clusterRef": c.GetName(), "role": string(d.role), "replicas": int64(1)}
	if c.Spec.Version != "" {
		spec["version"] = c.Spec.Version
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"finalizers": []any{metav1.FinalizerDeleteDependents},
			"ownerReferences": []any{map[string]any{
				"apiVersion": c.Kind.GroupVersion().String(), "kind": c.Kind.Kind, "name": c.GetName(), "uid": string(c.GetUID()),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": spec,
	}}
	u.SetGroupVersionKind(inventory.InstanceKind)
	u.SetNamespace(c.Namespace)
	u.SetName(d.name)
	u.SetLabels(labels)
	u.SetAnnotations(map[string]string{v1beta1.InstanceIndexAnnotation: strconv.Itoa(int(d.index))})
	return u
}

// readInstances finds the instances that the cluster controls, by name, and what there is of the cluster, whatever is wrong with it: the
// declared instances, those that others made for it, and what is left of former ones.
func (r *reconciler) readInstances(ctx context.Context, c inventory.Cluster) (owned map[string]*v1beta1.Bind9Instance, facts status.ClusterFacts, err error) {
	facts = status.ClusterFacts{Generation: c.GetGeneration(), Configured: status.True(status.ReconcileSucceeded, ""), Timeout: r.Timeouts.Instance}
	all, err := inventory.ListInstances(ctx, r.client, client.InNamespace(c.Namespace))
	if err != nil {
		return nil, facts, err
	}
	members := &membership.Fleet{} // all that a Bind9Cluster needs
	if c.IsGlobal() {
		if members, err = inventory.Read(ctx, r.client, r.SystemNamespace); err != nil {
			return nil, facts, err
		}
	}
	owned, others, stays := map[string]*v1beta1.Bind9Instance{}, map[string]*v1beta1.Bind9Instance{}, map[string]bool{}
	for _, i := range all {
		stays[i.Name] = true
		switch {
		case slices.ContainsFunc(i.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == c.GetUID() }):
			owned[i.Name], stays[i.Name] = i, false
		case members.BelongsTo(i, c.Object):
			others[i.Name] = i
		}
	}
	declared := map[string]bool{}
	for _, d := range declaredInstances(c) {
		declared[d.name], stays[d.name] = true, true
		facts.Instances = append(facts.Instances, status.ClusterInstance{Name: d.name, Instance: cmp.Or(owned[d.name], others[d.name])})
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if !declared[name] {
			facts.Instances = append(facts.Instances, status.ClusterInstance{Name: name, Instance: others[name]})
		}
	}
	facts.Leaving, err = r.leavingInstances(ctx, c, stays)
	for name, i := range owned {
		if waits := v1beta1.FinalizersOfBindy(i); !declared[name] && len(waits) > 0 && !i.DeletionTimestamp.IsZero() {
			facts.Leaving = append(slices.DeleteFunc(facts.Leaving, func(leaving string) bool { return leaving == name }),
				status.HeldBy(name, waits[0]))
		}
	}
	return owned, facts, err
}

// leavingInstances are the names of instances that have gone, or are about to go, and whose pods are still there.
func (r *reconciler) leavingInstances(ctx context.Context, c inventory.Cluster, stays map[string]bool) ([]string, error) {
	pods, err := inventory.ListPods(ctx, r.client, client.InNamespace(c.Namespace), client.MatchingLabels{v1beta1.ClusterLabel: c.GetName()})
	leaving := map[string]bool{}
	for _, pod := range pods {
		if name := pod.Labels[serving.LabelInstance]; !stays[name] && metav1.GetControllerOf(pod) != nil {
			leaving[name] = true
		}
	}
	return slices.Sorted(maps.Keys(leaving)), err
}
