// Package v1alpha1 holds DNSEndpoint of group externaldns.k8s.io, the kind by which other programs hand over DNS names.
//
// The Go types are this project's own description of a public API: external-dns itself cannot be a dependency. Field
// names and meaning are those of that API; status.conditions is an addition to it.
//
// +kubebuilder:object:generate=true
// +groupName=externaldns.k8s.io
package v1alpha1
