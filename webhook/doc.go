// Package webhook is the admission face: it marks records and DNSEndpoints with what has to be remembered of data that is
// about to enter DNS, and refuses objects that could never become DNS, before they are stored and in the terminal of the
// person who applies them.
//
// It reads informer caches: no DNS question happens inside a request, and an API call only where something is missing in
// the caches and a user would be warned of it (latest.go). The rules are those of package source, which the controller
// applies once more, because two objects that contradict each other can pass at the same moment and a cache can lag;
// admission is the early answer, the controller the binding one.
//
// Deletions of what others depend on are reviewed (deletion.go), all others are not, and the configurations in
// manifests/base/admission.yaml keep status writes, other programs' finalizers and what the controller itself writes away
// from here, so an outage can delay nothing but a change of specification.
//
// One handler marks (mark.go; marks.go decides) and one validates (review.go), which leaves each kind to its reviewer:
// records (record.go, all eight kinds), zones (zone.go), endpoints of external-dns (endpoint.go). A further kind is one
// more reviewer. Which zone takes an object is found in an index of zones (zones.go).
package webhook
