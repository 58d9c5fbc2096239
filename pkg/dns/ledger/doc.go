// Package ledger keeps, in a zone, which of its owners has declared which values. An owner is one installation that publishes through one
// DNSProvider. Several owners can have values in one RRset: each removes its own only, and a value that two have declared stays until the
// last one gives it up.
//
// The claims on all RRsets of an owner name are one TXT RRset, the ledger of that name, at RecordName: a record for each owner. Values and
// ledger change in one message that requires the ledger to be as it was read, so whoever is slower reads and decides anew. Nothing else has
// to be remembered anywhere: what is in the ledger is there with the values.
//
// View is the content that one owner wants a server to have, given what the server has. The package does no I/O. What it reads may be written
// by anybody who may update the zone: what is no record of a ledger is kept as it is and claims nothing.
package ledger
