// Package releases knows the releases of BIND that servers can run: which images have them, and in what they differ. It reads no file and
// asks no server. The fleet manager chooses images by it, and pkg/fleet/named what a configuration may have.
package releases
