// Package v1alpha1 holds DNSEndpoint of group externaldns.k8s.io, the kind in which other programs declare DNS names.
//
// The Go types are this project's own description of a public API: external-dns itself cannot be a dependency. Field
// names and meanings are those of that API; status.conditions is an addition.
//
// +kubebuilder:object:generate=true
// +groupName=externaldns.k8s.io
package v1alpha1
