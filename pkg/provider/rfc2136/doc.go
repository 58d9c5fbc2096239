// Package rfc2136 puts planned changes on a primary server with dynamic updates (RFC 2136), signed with TSIG.
//
// Every message is a compare-and-swap on the whole zone: it demands that the SOA is exactly the one that was planned
// against, and it brings the next SOA with a serial that we assign. So a third party's change is noticed instead of
// overwritten, and all primaries of a zone reach the same content at the same serial.
//
// One bad RRset does not block the others: a message that the server refuses is split until the guilty RRset stands
// alone. A message whose reply was lost is never sent again; the caller reads the zone and plans anew.
//
// Success here means that the server said NOERROR. BIND says so to several kinds of update that it ignores, hence the
// caller must read the zone back before it calls a change programmed. The package reads nothing and decides nothing
// about what a zone should hold.
package rfc2136
