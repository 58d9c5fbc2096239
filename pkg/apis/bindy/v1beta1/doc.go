// Package v1beta1 holds the stored API of group bindy.firestoned.io: zones, the eight kinds of record, and the fleet of
// BIND servers that serve them.
//
// The types here and the CustomResourceDefinitions in manifests/crds are one source: the markers in this package are
// what the schemas are generated from (see generate.mk beside it). What one object shows by itself is validated there,
// by schema and CEL; rules that need a second object belong to the webhook. The package depends on apimachinery alone
// and does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=bindy.firestoned.io
package v1beta1
