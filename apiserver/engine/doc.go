// Package engine answers what package apiserver is asked: it keeps what is declared (informers), asks the servers
// (pkg/observe) when somebody wants to know, and lets pkg/syncstatus judge. It stores nothing outside of memory, and
// talks to no server while nobody asks or watches.
//
// Index holds the desired side: who belongs to which zone (membership.Cache) follows every event, and what a zone should
// serve is brought up to date when somebody asks, at the cost of what changed since. It gives views, immutable snapshots
// of one zone each. List and Get observe the zones that they need, all servers at once, and return the partial truth when
// the deadline has passed. A watch is served by a tracker for each namespace, which lives as long as somebody watches
// there and judges again only what an event or an answer can have changed.
//
// A DNSEndpoint is judged by all zones that take names of it, also those of other namespaces. Its readers are told their
// names and servers, and no more.
//
// # Resource versions
//
// A revision is the time in microseconds, made strictly increasing, with the replica's number in the lowest ten bits.
// An object's resourceVersion is the revision at which this replica first saw its present verdict, so it changes when,
// and only when, the verdict or its evidence does. A list's is the revision at which it was complete. A watch from a
// revision sends what has changed since, by comparing; one from a revision of another replica goes back some
// seconds further, so that nothing is lost by a difference of clocks, or because this replica was the first to see it. A watch from a revision older than this process, or than what
// it remembers of deleted objects, is told that the revision is gone (410), and the client lists again.
//
// A reader may see a verdict, and so give it a revision, before the watches are told of it. Meanwhile these are handed
// later revisions, by bookmarks and by events about other objects. What is told after that gets a revision later still
// (heard.go), so that a watch which breaks off in between and goes on from what it was handed is told, too.
package engine
