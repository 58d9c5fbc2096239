// Package rfc2136 applies planned changes to a primary server with dynamic updates (RFC 2136), signed with TSIG.
//
// Every message is a compare-and-swap on the whole zone: its prerequisite is the exact SOA that was planned against, and it
// sets the next SOA with a serial that we assign. A third party's change is therefore noticed instead of overwritten, and
// all primaries of a zone reach the same content at the same serial. One message follows the reply to another: with
// several under way 10,000 RRsets took BIND and Knot about as long.
//
// One bad RRset does not block the others: a message that the server refuses is split until the bad RRset is alone. A
// message whose reply was lost is never sent again; the caller reads the zone and plans again.
//
// Success means that the server answered NOERROR. BIND does so for several kinds of update that it ignores, so the caller
// must read the zone back before it considers a change programmed. The package does not read zones and does not decide what
// a zone should hold.
package rfc2136
