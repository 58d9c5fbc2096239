// Package schema validates a single object with the libraries that kube-apiserver uses for the schema, the defaults and the
// CEL rules of a CustomResourceDefinition. It needs no cluster and looks at no other object.
package schema
