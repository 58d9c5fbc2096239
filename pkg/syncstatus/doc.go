// Package syncstatus computes SyncStatus objects: what is declared, times what every server answered, gives the
// verdict. It is pure. Clocks, sockets and caches stay with its caller, the aggregated API server.
//
// A Book keeps the desired side of a zone up to date (Declare makes it from scratch); Judge sets it against one round of
// answers; the Judgement then gives the SyncStatus of the zone and of each of its records. Endpoint sums up the judgements
// of all zones of a DNSEndpoint. An object costs the same in a zone of any size, and a zone what has changed of it since it
// was last asked about. How a state follows from the evidence:
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
//
// Data below a delegation that nobody declares counts as other data: the server holds it and answers with a referral.
//
// The primaries' newest serial is the reference (RFC 1982 arithmetic); when no primary answers, the newest serial of
// any server is. Serials ahead of the primaries' are never transferred, so such a server stays wrong until somebody
// acts, while one that is behind catches up by itself.
package syncstatus
