// Package render turns SyncStatus objects into text for people: a tree, one-line verdicts, a diff. It takes values and gives
// strings: no clock, no terminal, no cluster. The kubectl plugin (package plugin) calls it.
package render
