// Package gitops tests Lockstep with the engines of Argo CD and of Flux: that both find objects healthy when they are, and that folders
// are applied, changed and pruned whatever the order. It is a module of its own, so that the product depends on neither.
package gitops
