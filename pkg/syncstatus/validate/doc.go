// Package validate judges the servers of a zone as a validating resolver does, by what was already read from them. It finds the keys that
// vouch for a zone: a trust anchor, the DS records of a parent zone that is served here, or else the zone's own keys. With them, package
// dnssec judges the DNSKEY RRset and the SOA of each server, and the answers that others have asked for.
//
//	v := validate.NewValidator(anchors, 72*time.Hour)
//	result := v.Zone(validate.Zone{…}, time.Now())
//	verdict := result.Servers[0].Judge(reply, clock, cuts)
//
// It asks nobody. A Validator remembers its results: a zone that has not changed costs a comparison of its inputs.
package validate
