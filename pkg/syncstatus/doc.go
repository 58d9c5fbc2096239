// Package syncstatus computes SyncStatus objects from what is declared and what every server answered. It is pure: clocks,
// sockets and caches stay with its caller, the aggregated API server.
//
// A DesiredCache maintains the desired state of a zone (NewDesiredState computes it from scratch); Evaluate compares it with
// one round of answers; the Evaluation then has the SyncStatus of the zone and of each of its records. EndpointStatus sums
// up the Evaluations of all zones of a DNSEndpoint. The cost of an object does not depend on the size of its zone, and that
// of a zone on what has changed since the last time. How a state follows from the evidence:
//
//	no answer, or no address to ask                                   Unreachable
//	SERVFAIL, NOTAUTH                                                 NotLoaded
//	REFUSED, a TSIG error, a refused transfer                         Refused
//	an answer without the AA bit, or without an SOA at the apex       Lame
//	the data is as declared, whatever the serial                      InSync
//	other data, serial behind the primaries' newest                   Stale
//	other data, but the controller has not programmed this yet        Stale
//	no data at the newest serial                                      Missing
//	other data at the newest serial, or a serial ahead of it          Divergent
//	no worse than the above, but validating resolvers reject it       Bogus
//
// Data below an undeclared delegation or DNAME counts as other data: the server holds it, but answers with a referral or with
// other names. Data that a server holds and, by what it was asked, does not answer with is Shadowed.
//
// The primaries' newest serial is the reference (RFC 1982 arithmetic), or the newest serial of any server if no primary
// answers. A server ahead of the primaries never transfers, and stays wrong until somebody acts, while one that is behind
// catches up by itself.
package syncstatus
