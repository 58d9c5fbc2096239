// Package named knows how a BIND server is configured and run on Kubernetes: it renders named.conf, lays out the Secrets of
// TSIG keys, and describes the workload of an instance as apply configurations.
//
// It is pure: values in, text or objects out. The reconcilers of instances and of keys call it, and tests that start a real named.
//
// What releases of BIND differ in is in package releases, the control channel in package rndc. Questions and updates over DNS
// belong to pkg/dns/wire, zones over HTTP to pkg/fleet/bindcar.
package named
