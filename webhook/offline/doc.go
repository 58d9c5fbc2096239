// Package offline checks manifests without a cluster, as admission would: every object by the schema and the CEL rules of
// its definition, then all together by the reviews of package webhook. Findings have file and line.
//
// What it cannot know is what a cluster has beside the manifests: an object that is good here may still contradict one
// that is stored.
package offline
