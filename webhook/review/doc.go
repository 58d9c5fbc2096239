// Package review decides what admission refuses or warns about. It compares an object with the stored ones, by the rules of
// packages source and membership, which the controller applies once more: two objects that contradict each other can pass
// at the same moment, and a cache can lag. Admission is the early answer, the controller the binding one.
//
// It reads informer caches. No DNS question happens inside a request, and an API call only where something is missing in
// the caches and a user would be warned of it (live_reader.go).
//
// MarkingHandler (marking.go) marks records and DNSEndpoints as well, in the same call.
//
// Handler leaves each kind to its reviewer: records (record.go, all ten kinds), zones (zone.go, zone_checks.go),
// instances and DNSProviders (servers.go), DNSEndpoints (endpoint.go), deletions of what others depend on (deletion.go). A
// further kind is one more reviewer. Batch reviews objects that no cluster stores yet.
package review
