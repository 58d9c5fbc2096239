package membership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// ClusterCandidate is an empty object of a kind of cluster with the key under which it is looked up.
type ClusterCandidate struct {
	Object client.Object
	Key    types.NamespacedName
}

// ClusterCandidates lists what a clusterRef of a namespace may mean; the first that exists counts: a Bind9Cluster of the namespace, else
// a cluster-scoped cluster.
func ClusterCandidates(namespace, clusterRef string) []ClusterCandidate {
	global := types.NamespacedName{Name: clusterRef}
	return []ClusterCandidate{
		{&v1beta1.Bind9Cluster{}, types.NamespacedName{Namespace: namespace, Name: clusterRef}},
		{&v1beta1.Bind9GlobalCluster{}, global},
		{&v1beta1.ClusterBind9Provider{}, global},
	}
}

// InstanceNamespace is the namespace of a cluster's instances. Those of cluster-scoped clusters that name none are in
// systemNamespace, the namespace that Lockstep runs in.
func InstanceNamespace(cluster metav1.Object, systemNamespace string) string {
	namespace := cluster.GetNamespace()
	switch c := cluster.(type) {
	case *v1beta1.Bind9GlobalCluster:
		namespace = c.Spec.Namespace
	case *v1beta1.ClusterBind9Provider:
		namespace = c.Spec.Namespace
	}
	if namespace == "" {
		return systemNamespace
	}
	return namespace
}
