// Package controller holds the reconcilers: clusters make instances, instances make pods, zones bring their records to
// the pods. Each file named after a kind is that kind's reconciler; files named zone_* are the steps of a pass over a
// zone, in the order gather, mark, primaries, secondaries, and finalize.
//
// A pass is started by events only (zone_watch.go). It decides nothing by itself: what is wanted comes from source, what
// changes from plan, how it is applied from provider, what was found from observe, and what is told from status.
package controller
