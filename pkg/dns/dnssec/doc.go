// Package dnssec judges whether a validating resolver accepts an answer of an authoritative server: RFC 4035 section 5, RFC 5155
// section 8, RFC 6840, and RFC 9276 for the iterations of NSEC3.
//
//	keys := dnssec.Trust("example.com.", dnskeyReply.Answer, dsRecords, clock)
//	verdict := keys.Judge(reply, clock)
//
// It judges the answers of one zone with the keys of that zone. Of names in other zones, to which a CNAME or a delegation leads, it
// takes nothing. It does no I/O, reads no clock and keeps nothing. Whoever asks servers calls it.
//
// A message comes from a server that may be hostile: each call does a bounded number of verifications and hashes (work).
package dnssec
