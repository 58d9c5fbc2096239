// Package registry asks the zone above a signed zone where nobody declares that zone here: the DNS of a registry, or of another team. It
// finds its name servers by the system's resolver, asks each of them, and notifies whoever the registry names that the zone has other CDS
// records (RFC 9859).
//
// Everything that it hears was said by somebody else: it connects by package outbound, to few addresses, and decides nothing.
package registry
