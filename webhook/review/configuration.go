package review

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// reviewCluster judges what the servers of a Bind9Cluster would be made from. There is a limit for clusters, and their definition says the
// rest.
func reviewCluster(_ context.Context, cluster, _ *v1beta1.Bind9Cluster) (Result, error) {
	return clusterResult(cluster)
}

// clusterResult warns of what is wrong with the settings of a cluster of any kind, for servers of either role.
func clusterResult(cluster client.Object) (Result, error) {
	fields, err := fieldsOf(cluster)
	if err != nil {
		return Result{}, err
	}
	var warnings []string
	for _, workload := range workloadsOf(cluster) {
		for _, warning := range fields.warnings(workload.Check(), "spec."+string(workload.Instance.Spec.Role), "spec.global", "spec") {
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
	}
	return Result{Warnings: warnings}, nil
}

// workloadsOf are those of a server of either role that a cluster would have.
func workloadsOf(cluster client.Object) (workloads []named.Workload) {
	for _, role := range []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary} {
		instance := &v1beta1.Bind9Instance{Spec: v1beta1.Bind9InstanceSpec{Role: role, ClusterRef: cluster.GetName()}}
		workloads = append(workloads, named.Workload{Instance: instance, Cluster: *inventory.AsCluster(cluster, "").Spec})
	}
	return workloads
}

// fileWarnings warns of what the ConfigMaps lack that an instance or a cluster names, if these are among the objects. Admission may not read
// ConfigMaps.
func (s *staticObjects) fileWarnings(ctx context.Context, o client.Object) ([]string, error) {
	var workload named.Workload
	namespace := o.GetNamespace()
	switch o := o.(type) {
	case *v1beta1.Bind9Instance:
		workload.Instance = o
		cluster, err := s.clusterOf(ctx, o)
		if err != nil {
			return nil, err
		}
		if cluster.Object != nil {
			workload.Cluster = *cluster.Spec
		}
	case *v1beta1.Bind9Cluster, *v1beta1.Bind9GlobalCluster, *v1beta1.ClusterBind9Provider:
		workload, namespace = workloadsOf(o)[0], inventory.AsCluster(o, defaultHome).Namespace // The files are those of both roles.
	default:
		return nil, nil
	}
	fields, err := fieldsOf(o)
	if err != nil {
		return nil, err
	}
	return fields.warnings(workload.CheckFiles(func(name string) *corev1.ConfigMap {
		return s.configMaps[types.NamespacedName{Namespace: namespace, Name: name}]
	}), "spec"), nil
}

// configurationWarnings warns of what is wrong with an instance's own settings, beside those of its cluster. Without that, nothing is known
// of the lists that they may name.
func configurationWarnings(ctx context.Context, o Objects, instance *v1beta1.Bind9Instance) ([]string, error) {
	cluster, err := o.clusterOf(ctx, instance)
	if err != nil || cluster.Object == nil && instance.Spec.ClusterRef != "" {
		return nil, err
	}
	workload := named.Workload{Instance: instance}
	if cluster.Object != nil {
		workload.Cluster = *cluster.Spec
	}
	fields, err := fieldsOf(instance)
	if err != nil {
		return nil, err
	}
	return fields.warnings(workload.Check(), "spec", "spec.config"), nil
}

// objectFields are the fields of an object.
type objectFields map[string]any

func fieldsOf(o client.Object) (objectFields, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// warnings are those of the errors of named.Workload.Check whose fields the object has, in one of these parents: the first that has a field is the one
// that counts.
func (f objectFields) warnings(err error, parents ...string) (warnings []string) {
	if err == nil {
		return nil
	}
	for _, text := range errorTexts(err) {
		path, _, _ := strings.Cut(text, ": ")
		if parent := f.parentOf(path, parents); parent != "" {
			warnings = append(warnings, parent+strings.TrimPrefix(text, path))
		}
	}
	return warnings
}

// parentOf returns the complete path of a field; empty if the object does not have it. The sidecar's settings have some fields in another
// place.
func (f objectFields) parentOf(path string, parents []string) string {
	const service, volumes = "service.spec.", "volumes"
	inSidecar := ""
	if rest, ok := strings.CutPrefix(path, service); ok {
		inSidecar = "bindcarConfig.serviceSpec." + rest
	} else if path == volumes {
		inSidecar = "bindcarConfig." + path
	}
	for _, within := range []string{path, inSidecar} {
		for _, parent := range parents {
			if at := parent + "." + within; within != "" && f.has(at) {
				return at
			}
		}
	}
	return ""
}

// has reports whether there is the field of a path, whatever it has under an index or a key.
func (f objectFields) has(path string) bool {
	path, _, _ = strings.Cut(path, "[")
	_, found, _ := unstructured.NestedFieldNoCopy(f, strings.Split(path, ".")...)
	return found
}
