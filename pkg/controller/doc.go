// Package controller holds the reconcilers: clusters make instances, instances make pods, zones bring the data of their
// objects to the pods. Each file named after a kind is that kind's reconciler; files named zone_* are what is known of zones
// between passes and the steps of a pass, which docs/architecture.md names in order.
//
// A pass is started by events (zone_events.go, zone_watch.go, zone_notices.go). It decides nothing by itself: what is wanted
// comes from source, what changes from plan, how it is applied from provider, what was found from observe, and what is told
// from status.
package controller
