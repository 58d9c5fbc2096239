// Package v1beta1 holds CAPTControlPlane of group controlplane.cluster.x-k8s.io: the control plane of a Cluster of Cluster API, as
// far as its status goes. Something else makes it: a WorkspaceTemplateApply.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1beta1
