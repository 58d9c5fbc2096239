// Package observe tells what each authoritative server serves right now.
//
// An Observer asks a server for a zone's SOA and keeps a Mirror of the zone's content, which it brings up to date by
// incremental transfer only when the SOA has changed: judging ten thousand records costs one question per server and
// zone. Mirrors are immutable, so that readers may hold on to one while the next is made.
//
// The package judges nothing: whether a server is in step is decided in syncstatus. It never writes to a server. The
// controller, which plans against what a primary holds, and the aggregated API server call it.
package observe
