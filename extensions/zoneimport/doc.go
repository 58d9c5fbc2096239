// Package zoneimport writes the manifests of a zone that exists: "lockstep import" and "kubectl lockstep import".
//
//	zone file ──┐                                     ┌─► objects ──► source.Build ──► the same content? ──► YAML
//	transfer  ──┴─► zoneContent: RRsets with places ──┤
//	                                                  └─► differences: what the manifests lack, with file and line
//
// What the controller would publish is asked of package source, which is also what decides: content that comes out otherwise, for
// whatever reason, is reported as a difference and never passed over.
package zoneimport
