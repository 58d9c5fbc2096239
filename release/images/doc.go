// Package images describes the images that users of this project run:
// Lockstep's, of one static binary, and one for each release of BIND, of the
// packages of the Debian release that has it. The dev cluster and a release
// build them from here. No registry is asked for anything.
package images
