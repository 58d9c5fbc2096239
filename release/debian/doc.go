// Package debian takes programs out of Debian's packages, with just the shared
// libraries that they are linked to, for an image that holds nothing else. The
// packages come by apt, which checks where they are from; none is installed. Those of another Debian release than
// the machine's come from the same mirrors.
package debian
