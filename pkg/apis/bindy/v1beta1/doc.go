// Package v1beta1 holds the stored API of group bindy.firestoned.io: zones, the ten record kinds, and the BIND servers
// that serve them.
//
// The CustomResourceDefinitions in manifests/crds are generated from the types and markers in this package (make
// generate). Schema and CEL rules validate what a single object shows; rules that need a second object belong to the
// webhook. The package depends only on apimachinery and does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=bindy.firestoned.io
package v1beta1
