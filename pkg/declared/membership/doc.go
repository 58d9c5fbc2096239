// Package membership answers which object belongs to which zone, and which zone to which servers. Admission, the
// controller and the API server ask this package alone, so that they never disagree.
//
// A Cache holds zones and the objects that declare their data, and keeps up with changes at the cost of what a change
// affects. The rules themselves are pure functions: SelectsRecord, and those of Fleet.
//
// The package does no I/O: informers feed the cache, and callers list instances.
package membership
