// Package observe reports what each authoritative server serves.
//
// An Observer asks a server for a zone's SOA and keeps a Mirror of the zone's content, which it updates by incremental
// transfer only if the SOA has changed: comparing ten thousand records costs one query per server and zone. Mirrors are
// immutable, so that readers may keep one while the next is made.
//
// The package does not evaluate: whether a server is in sync is decided in syncstatus. It never writes to a server. The
// controller, which plans against what a primary holds, and the aggregated API server call it.
package observe
