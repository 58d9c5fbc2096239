// Package serving says which servers serve what is declared: the pods of instances and the servers of DNSProviders.
//
// It also has what those who run the servers and those who ask them agree on: ports, labels and names of keys. It reads objects
// and nothing else; what the servers answer is observed by package observe.
package serving
