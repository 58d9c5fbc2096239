// Package debian takes programs out of Debian's packages, with just the shared
// libraries that they are linked to, for an image that holds nothing else. The
// packages come by apt, which checks where they are from; none is installed.
package debian
