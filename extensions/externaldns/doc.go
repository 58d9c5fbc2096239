// Package externaldns is the server of external-dns' webhook provider protocol: it turns what external-dns found at Services,
// Ingresses and other sources into DNSEndpoints, one for each source object and in its namespace. From there they take the way of
// every declaration: admission, the permission of zones, conflicts, status. The package decides nothing about zones and asks no server.
//
// adjust.go, records.go and changes.go are pure; server.go speaks the protocol, store.go and notices.go write to Kubernetes.
package externaldns
