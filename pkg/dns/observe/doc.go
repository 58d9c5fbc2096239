// Package observe reports what each authoritative server serves.
//
// An Observer asks a server for a zone's SOA and keeps a Mirror of the zone's content, which it updates by incremental
// transfer only if the SOA has changed: comparing ten thousand records costs one query per server and zone. Mirrors are
// immutable, so that readers may keep one while the next is made.
//
// A server that is read by query gets a limited number of questions in a second, those of each namespace in turn: one namespace's list of
// 10,000 records would otherwise keep the others waiting for five seconds (TestQuestionsTakeTurns).
//
// The package does not evaluate: whether a server is in sync is decided in syncstatus. It never writes to a server. The
// controller, which plans against what a primary holds, and the aggregated API server call it.
package observe
