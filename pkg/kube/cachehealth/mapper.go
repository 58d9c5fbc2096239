package cachehealth

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// namespacedKinds and clusterKinds are what the components follow, by API version.
var (
	namespacedKinds = map[schema.GroupVersion][]string{
		v1beta1.GroupVersion:           append([]string{"DNSZone", "Bind9Instance", "Bind9Cluster", "DNSProvider"}, recordKinds()...),
		v1alpha1.GroupVersion:          {source.EndpointKind},
		corev1.SchemeGroupVersion:      {"Pod", "Service", "Secret", "ConfigMap", "ServiceAccount"},
		appsv1.SchemeGroupVersion:      {"StatefulSet"},
		discoveryv1.SchemeGroupVersion: {"EndpointSlice"},
		policyv1.SchemeGroupVersion:    {"PodDisruptionBudget"},
		rbacv1.SchemeGroupVersion:      {"Role", "RoleBinding"},
	}
	clusterKinds = map[schema.GroupVersion][]string{
		v1beta1.GroupVersion:      {"Bind9GlobalCluster", "ClusterBind9Provider", "ZoneGrant"},
		corev1.SchemeGroupVersion: {"Namespace"},
	}
)

func recordKinds() (kinds []string) {
	for _, k := range v1beta1.RecordKinds {
		kinds = append(kinds, k.Kind)
	}
	return kinds
}

// NewMapper is a MapperProvider of controller-runtime's managers. It knows the resources of the kinds that the components follow, so
// that one starts although kube-apiserver does not answer for a moment: one that ends then is kept waiting by its kubelet. It asks
// kube-apiserver for other kinds.
func NewMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	asking, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	for scope, kinds := range map[meta.RESTScope]map[schema.GroupVersion][]string{meta.RESTScopeNamespace: namespacedKinds, meta.RESTScopeRoot: clusterKinds} {
		for version, names := range kinds {
			for _, kind := range names {
				known.Add(version.WithKind(kind), scope)
			}
		}
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, asking}}, nil
}
