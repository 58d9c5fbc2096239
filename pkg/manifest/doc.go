// Package manifest reads Kubernetes objects from YAML and JSON files and remembers on which line each of their fields
// stands, so that whatever is wrong can be told with file and line.
package manifest
