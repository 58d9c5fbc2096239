// Package version knows which version of Lockstep this program is.
package version

import "runtime/debug"

// Module returns the version of the module that this program was built from: that of a release, or (devel) in a checkout.
func Module() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
