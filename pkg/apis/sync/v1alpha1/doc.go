// Package v1alpha1 holds the served API of group sync.bindy.firestoned.io: SyncStatus, the live answer to the question
// whether every authoritative server serves what an object declares.
//
// Nothing of it is ever stored. The aggregated API server (package apiserver) computes a SyncStatus when it is asked
// for, and the field comments here are what `kubectl explain syncstatus` prints. The verdict is under status, where
// `kubectl wait` and GitOps tools look for conditions; the evidence that it rests on is at the top level.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.firestoned.bindy.sync.v1alpha1
// +groupName=sync.bindy.firestoned.io
package v1alpha1
