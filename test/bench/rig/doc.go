// Package rig is what the benchmarks stand on: a namespace with one primary and two secondaries, objects in number,
// the moment at which every server serves them, and what controller, API server and BIND spent on it.
//
// A benchmark is a main package that hands its work to [Main]. It measures from outside, as a user would: it writes
// objects and asks the servers by DNS. So it runs on any cluster whose pods can be reached from where it runs, with
// Lockstep installed in it.
package rig
