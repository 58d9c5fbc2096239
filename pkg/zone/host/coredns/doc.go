// Package coredns keeps zones in etcd for CoreDNS, whose plugin "etcd" reads them there in the layout of SkyDNS
// (https://coredns.io/plugins/etcd/).
//
// A value of an RRset is a key: the zone's prefix, the labels of the owner name from the right, and a last part that no query
// can reach. Every value of ours has a marker with owner, zone and type, so that values of others are recognized, left alone, and
// seen where they change an answer.
//
// The plugin answers a question for a name with all that lies below its key. What keeps names apart is the group of each value,
// and what cannot be kept apart is refused: encode and Unsupported know the rules, answer has the plugin's own, and the tests ask
// a real CoreDNS whether both are right.
//
// Every transaction compares the revisions of the keys that the plan was made from. What a zone holds is read from etcd each time; what
// CoreDNS makes of it is worked out while the transactions are under way, and counts if the very same was read.
package coredns
