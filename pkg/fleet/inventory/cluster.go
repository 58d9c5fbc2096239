// Package inventory holds what the reconcilers share about clusters, instances and pods: how the cache is read, which cluster an
// instance belongs to, where a sidecar listens, which events start a reconciliation, and where servers may run. It writes
// nothing but the finalizer with which servers wait for zones.
//
// Its Turns keep a tenant's servers from all workers of a controller: forty zones on a server that accepted connections and said nothing
// delayed every other zone by a minute (TestTarpitDelaysNoZoneOfOthers, docs/decisions/2026-11-22-budgets-for-servers.md). The priority
// queue of controller-runtime orders what waits; it does not bound how many workers one namespace has.
package inventory

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// InstanceKind is the kind of instances.
var InstanceKind = v1beta1.GroupVersion.WithKind("Bind9Instance")

// Cluster is an object of one of the three kinds that make instances. All have the same specification and status; two
// are cluster-scoped and name the namespace of their instances.
type Cluster struct {
	client.Object
	Kind schema.GroupVersionKind
	// Namespace is that of the instances and their keys.
	Namespace string
	Spec      *v1beta1.Bind9ClusterSpec
	Status    *v1beta1.Bind9ClusterStatus
}

// NewClusters makes an empty object of each kind of cluster.
var NewClusters = []func() client.Object{
	func() client.Object { return &v1beta1.Bind9Cluster{} },
	func() client.Object { return &v1beta1.Bind9GlobalCluster{} },
	func() client.Object { return &v1beta1.ClusterBind9Provider{} },
}

// AsCluster takes an object of one of the three kinds. The instances of a cluster-scoped one that names no namespace are in systemNamespace.
func AsCluster(o client.Object, systemNamespace string) Cluster {
	namespace := membership.InstanceNamespace(o, systemNamespace)
	switch o := o.(type) {
	case *v1beta1.Bind9Cluster:
		return Cluster{o, v1beta1.GroupVersion.WithKind("Bind9Cluster"), namespace, &o.Spec, &o.Status}
	case *v1beta1.Bind9GlobalCluster:
		return Cluster{o, v1beta1.GroupVersion.WithKind("Bind9GlobalCluster"), namespace, &o.Spec.Bind9ClusterSpec, &o.Status}
	case *v1beta1.ClusterBind9Provider:
		return Cluster{o, v1beta1.GroupVersion.WithKind("ClusterBind9Provider"), namespace, &o.Spec.Bind9ClusterSpec, &o.Status}
	}
	panic(fmt.Sprintf("%T is no cluster", o))
}

// ClusterOf reads the cluster that an instance names. Its Object is nil when the instance names none, or one that does not
// exist or keeps its instances in another namespace.
func ClusterOf(ctx context.Context, c client.Reader, i *v1beta1.Bind9Instance, systemNamespace string) (Cluster, error) {
	if i.Spec.ClusterRef == "" {
		return Cluster{}, nil
	}
	for _, candidate := range membership.ClusterCandidates(i.Namespace, i.Spec.ClusterRef) {
		if err := c.Get(ctx, candidate.Key, candidate.Object); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return Cluster{}, err
		}
		if found := AsCluster(candidate.Object, systemNamespace); found.Namespace == i.Namespace {
			return found, nil
		}
	}
	return Cluster{}, nil
}

// CheckReadable refuses objects of which a part could not be decoded: pods made of the rest would not be those declared.
// Nil is no object. The error wraps named.ErrConfig.
func CheckReadable(objects ...client.Object) error {
	for _, o := range objects {
		if o == nil {
			continue
		}
		if problem := lenient.SpecProblem(o); problem != "" {
			return fmt.Errorf("%w: %s %s: %s; servers stay as they are until it is corrected", named.ErrConfig, kindOf(o), o.GetName(), problem)
		}
	}
	return nil
}

func kindOf(o client.Object) string {
	if _, ok := o.(*v1beta1.Bind9Instance); ok {
		return InstanceKind.Kind
	}
	return AsCluster(o, "").Kind.Kind
}

// IsGlobal reports whether zones of every namespace may use the cluster.
func (c Cluster) IsGlobal() bool { return c.GetNamespace() == "" }

// OwnerReference makes the cluster the owner of an object; it returns nil when there is no cluster.
func (c Cluster) OwnerReference() *metav1ac.OwnerReferenceApplyConfiguration {
	if c.Object == nil {
		return nil
	}
	return named.OwnerReference(c.Kind.GroupVersion().String(), c.Kind.Kind, c)
}
