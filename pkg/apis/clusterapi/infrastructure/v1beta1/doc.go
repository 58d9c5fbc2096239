// Package v1beta1 holds CAPTCluster of group infrastructure.cluster.x-k8s.io: the infrastructure of a Cluster of Cluster API, as
// far as its status goes. Something else makes that infrastructure: a WorkspaceTemplateApply.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1
