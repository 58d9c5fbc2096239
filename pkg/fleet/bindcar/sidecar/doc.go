// Package sidecar is the server beside every named: it implements the HTTP API of package bindcar.
//
// It reaches named on loopback only, over the rndc protocol and the statistics channel, and shares its zone directory: a
// primary's zone is written as a complete file before named loads it. It never sends DNS messages, never
// reads a TSIG secret and keeps no state of its own but one small description beside each zone file. It serves HTTPS with a
// certificate that the controller issued, and callers authenticate with one of their own (mutual TLS).
package sidecar
