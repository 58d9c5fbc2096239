// Package manifest reads Kubernetes objects from YAML and JSON files and remembers on which line each of their fields
// stands, so that problems can be reported with file and line. Printable makes such a report safe to print.
package manifest
