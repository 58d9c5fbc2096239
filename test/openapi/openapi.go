// Package openapi looks into OpenAPI documents for tests: a reference that leads nowhere breaks clients.
package openapi

import "strings"

// References returns every $ref below a node of a document.
func References(node any) (refs []string) {
	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			if ref, ok := child.(string); ok && key == "$ref" {
				refs = append(refs, ref)
			} else {
				refs = append(refs, References(child)...)
			}
		}
	case []any:
		for _, child := range node {
			refs = append(refs, References(child)...)
		}
	}
	return refs
}

// Resolves reports whether a reference inside a document (RFC 6901) leads anywhere.
func Resolves(document any, ref string) bool {
	path, local := strings.CutPrefix(ref, "#/")
	for step := range strings.SplitSeq(path, "/") {
		node, ok := document.(map[string]any)
		if !ok {
			return false
		}
		if document = node[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; document == nil {
			return false
		}
	}
	return local
}
