// Package clause knows the parts of named.conf that named's options and the clauses of zones have in common: address match lists, lists of
// servers, and the names of what both refer to. It imports nothing of Kubernetes: the sidecar, which adds zones, is built without.
package clause

// KeyRole says what a TSIG key permits.
type KeyRole string

// The keys of a cluster, or of an instance that stands alone.
const (
	// KeyUpdate permits updates. Only the controller and the primaries hold it.
	KeyUpdate KeyRole = "update"
	// KeyTransfer permits zone transfers and signs NOTIFY.
	KeyTransfer KeyRole = "transfer"
)

// KeyACL returns the name of the address match list of all keys in a ring.
func KeyACL(role KeyRole) string { return "lockstep-" + string(role) }

// TransferACL is the address match list of allowTransfer. Clauses of zones that let others transfer name it, too: named takes a zone's own
// list in place of the one among its options.
const TransferACL = "lockstep-allow-transfer"

// QueryACL is the address match list of our keys and allowQuery, or any. The same clauses name it: who may transfer a zone may ask for its SOA
// record.
const QueryACL = "lockstep-allow-query"

// Policies that named knows without a definition.
const (
	// PolicyDefault signs with one key that is never rolled.
	PolicyDefault = "default"
	// PolicyInsecure takes the signatures off a zone that was signed.
	PolicyInsecure = "insecure"
	// PolicyNone does not sign.
	PolicyNone = "none"
)
