// Package version knows which version of Lockstep this program is.
package version

import "runtime/debug"

// release is set by the linker when a release is built: the program was built from a checkout, of which its build information knows no
// version.
var release string

// Module returns the version of the module that this program was built from: that of a release, or (devel) in a checkout.
func Module() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
