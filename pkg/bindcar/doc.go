// Package bindcar is the sidecar of every BIND pod, and its client: an HTTP API that adds zones to the one named beside
// it, removes and inspects them. It speaks the API of the public sidecar of the same name.
//
// The server reaches named on loopback only, over the rndc protocol and the statistics channel, and shares its zone
// directory: a primary's zone is written as a complete file before named hears of it. It never sends DNS messages, never
// reads a TSIG secret and keeps no state of its own but one small description beside each zone file. It serves
// HTTPS with a certificate that the controller issued, and callers prove themselves with a ServiceAccount token. The controller is the one caller in production.
package bindcar
