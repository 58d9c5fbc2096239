// Package plugin is the kubectl plugin `kubectl lockstep`: the commands tree, status, diff, path, chain and ui over the SyncStatus API. It
// connects as kubectl does, asks for nothing but syncstatuses (get, list, watch) and, for the page, their events, and writes nothing. What it prints comes
// from package render. cmd/kubectl-lockstep calls it.
package plugin
