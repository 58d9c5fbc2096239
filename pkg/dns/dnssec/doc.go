// Package dnssec judges whether a validating resolver accepts an answer of an authoritative server: RFC 4035 section 5, RFC 5155
// section 8, RFC 6840, and RFC 9276 for the iterations of NSEC3.
//
//	keys := dnssec.Trust("example.com.", dnskeyReply.Answer, dsRecords, clock)
//	verdict := keys.Judge(reply, clock)
//
// It judges the answers of one zone with the keys of that zone. It takes nothing from other zones, to which a CNAME or a delegation
// leads. It does no I/O, reads no clock and keeps nothing. Whoever asks servers calls it.
//
// A message comes from a server that may be hostile: each call does a bounded number of verifications and hashes (work).
//
// Resolvers differ where the RFCs leave them a choice, and the verdict here is the stricter one. An answer is Bogus if one of its RRsets
// has no valid signature (RFC 4035 section 5.5); BIND ignores such an RRset of the authority section if no proof needs it. A name that
// opt-out covers can belong to an unsigned zone. A resolver that finds this out by asking for DS records accepts an unproven answer as
// Insecure (RFC 5155 section 6); Judge sees one answer, and says Bogus. Of DS records with several digest types, unbound follows those with the
// strongest alone, and so does Trust; BIND leaves out only SHA-1.
package dnssec
