// Package mark decides the finalizer, the zone annotation and the former names of records and DNSEndpoints before they are
// stored. handler.go reads requests, mark_rules.go decides.
package mark
