// Package schema judges one object by itself, by the very libraries that kube-apiserver does it with: the schema of its
// CustomResourceDefinition, the defaults and the CEL rules in it. It needs no cluster and looks at no other object.
package schema
