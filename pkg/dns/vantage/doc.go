// Package vantage asks name servers from another place than the API server's: what clients there get. A Server answers the API server
// over HTTPS with client certificates, and a Client is how the API server asks it. Both know nothing of Kubernetes.
//
// Neither trusts the other with more than it needs. A Server asks nothing but a zone's SOA and a server's name, at addresses that package
// outbound permits, at ports that its operator permits, so many in a second. A Client takes numbers and names from a Server, no sentences and no times.
package vantage
