// Package apiserver is the aggregated API server of group sync.bindy.firestoned.io. It serves syncstatuses (get, list,
// watch) and the virtual subresource syncstatus of every kind that has one, computed by package refresh when they are
// asked for.
//
// It stores nothing and writes nothing. Discovery, OpenAPI and health wait for no DNS server, so that an outage of DNS,
// or of this server, slows nothing else in the cluster. Who may read is RBAC's business alone: authentication and
// authorization are delegated to kube-apiserver.
//
// Options become a Config, a Config becomes a Server: NewOptions().Run does all three.
package apiserver
