// Package v1alpha1 holds the served API of group sync.bindy.firestoned.io: SyncStatus, which reports live whether every
// authoritative server serves what an object declares.
//
// A SyncStatus is never stored in etcd: the aggregated API server (package apiserver) computes it on request. `kubectl
// explain syncstatus` prints the field comments in this package. The verdict is under status, where `kubectl wait` and
// GitOps tools look for conditions. The evidence for it is at the top level.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.firestoned.bindy.sync.v1alpha1
// +groupName=sync.bindy.firestoned.io
package v1alpha1
