package cluster

import (
	"fmt"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// declaredInstance is one instance that a cluster declares.
type declaredInstance struct {
	name   string
	role   v1beta1.ServerRole
	index  int32
	labels map[string]string
}

// declaredInstances returns the instances that a cluster declares, primaries first.
func declaredInstances(c fleet.Cluster) (all []declaredInstance) {
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

// configuration returns only what makes the instance this cluster's: its server takes all settings from the cluster itself.
func (d declaredInstance) configuration(c fleet.Cluster) *unstructured.Unstructured {
	labels := map[string]string{}
	maps.Copy(labels, d.labels)
	maps.Copy(labels, map[string]string{
		named.LabelName: named.AppName, named.LabelInstance: d.name, named.LabelComponent: string(d.role), named.LabelPartOf: c.GetName(),
		named.LabelManagedBy: named.Manager, v1beta1.ManagedByLabel: c.Kind.Kind, v1beta1.ClusterLabel: c.GetName(), v1beta1.RoleLabel: string(d.role),
	})
	spec := map[string]any{"clusterRef": c.GetName(), "role": string(d.role), "replicas": int64(1)}
	if c.Spec.Version != "" {
		spec["version"] = c.Spec.Version
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"ownerReferences": []any{map[string]any{
				"apiVersion": c.Kind.GroupVersion().String(), "kind": c.Kind.Kind, "name": c.GetName(), "uid": string(c.GetUID()),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": spec,
	}}
	u.SetGroupVersionKind(fleet.InstanceKind)
	u.SetNamespace(c.Namespace)
	u.SetName(d.name)
	u.SetLabels(labels)
	u.SetAnnotations(map[string]string{v1beta1.InstanceIndexAnnotation: strconv.Itoa(int(d.index))})
	return u
}
