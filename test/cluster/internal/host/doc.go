// Package host changes the machine that the cluster runs on, and takes every
// change back: packages, the bridge and its routes, packet filter rules,
// kernel settings, mounts, control groups.
//
// Whatever it removes is known to be the cluster's by its name or its place:
// the bridge is called Bridge, mounts lie under the cluster's own folders, and
// chains are the ones that its components make.
package host
