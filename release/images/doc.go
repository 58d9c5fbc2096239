// Package images describes the two images that users of this project run:
// Lockstep's, of one static binary, and BIND's, of the packages of the Debian
// release that this machine's sources offer. The dev cluster and a release
// build them from here. No registry is asked for anything.
package images
