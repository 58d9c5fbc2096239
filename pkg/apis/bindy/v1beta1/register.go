package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "bindy.firestoned.io"

// GroupVersion is the group and version under which these kinds are stored.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// SchemeGroupVersion is GroupVersion under the name that generated clients expect.
var SchemeGroupVersion = GroupVersion

var (
	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind qualifies a kind with this package's group.
func Kind(kind string) schema.GroupKind {
	return GroupVersion.WithKind(kind).GroupKind()
}

// Resource qualifies a plural resource name with this package's group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&DNSZone{}, &DNSZoneList{},
		&Bind9Instance{}, &Bind9InstanceList{},
		&Bind9Cluster{}, &Bind9ClusterList{},
		&Bind9GlobalCluster{}, &Bind9GlobalClusterList{},
		&ClusterBind9Provider{}, &ClusterBind9ProviderList{},
		&ZoneGrant{}, &ZoneGrantList{},
		&DNSProvider{}, &DNSProviderList{},
	)
	for _, k := range RecordKinds {
		scheme.AddKnownTypes(GroupVersion, k.New(), k.NewList())
	}
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
