// Package named knows how a BIND server is configured, controlled and run on Kubernetes: it renders named.conf,
// speaks the rndc protocol, keeps the TSIG keys' Secrets and describes the workload of an instance as apply
// configurations.
//
// What releases of BIND differ in is in pkg/fleet/named/releases.
//
// Rendering is pure: values in, text or objects out. The only I/O is that of the rndc client, which talks to the named
// in its own pod. Questions and updates over DNS belong to pkg/dns/wire, zones over HTTP to pkg/fleet/bindcar. The package is
// called by the instance reconciler, by bindcar and by tests that start a real named.
package named
