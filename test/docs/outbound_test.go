package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// connecting is what connects, or resolves host names, without package outbound.
var connecting = regexp.MustCompile(`\bnet\.(Dial|Lookup|Resolve[A-Z]|DefaultResolver|Resolver\{)\w*|\bnet\.ListenPacket|\btls\.Dial\w*|\bhttp\.(Get|Head|Post|PostForm)\(|` +
	`\bhttp\.(Client\{|Transport\{|DefaultClient|DefaultTransport)|\bgrpc\.(NewClient|Dial\w*)\(|\bclientv3\.New\(|\bdns\.(Client\{|Exchange\w*|Dial\w*|Transfer\{)`)

// ownWays are the files and folders that connect otherwise, with what for.
var ownWays = map[string]string{
	"pkg/dns/outbound/":                 "it is the way out",
	"pkg/dns/vantage/client.go":         "operators name vantages",
	"pkg/fleet/bindcar/client.go":       "its transport dials through outbound (address.go)",
	"pkg/zone/host/coredns/connect.go":  "its gRPC client dials through outbound",
	"pkg/fleet/bindcar/sidecar/":        "it runs beside named, and reaches what named reaches",
	"pkg/fleet/bindcar/signingkeys/":    "it runs beside named, and asks kube-apiserver",
	"pkg/fleet/bindcar/statistics/":     "it runs beside named, and asks that",
	"pkg/fleet/named/rndc/client.go":    "it runs beside named, and asks that",
	"extensions/zoneimport/transfer.go": "it runs where its user types, as that user",
}

// TestOneWayOut: what follows from objects of tenants connects through package outbound, which decides where to and how often. Whatever
// connects otherwise has its reason above.
func TestOneWayOut(t *testing.T) {
	used := map[string]bool{}
	for name, text := range goFiles(t, false, rooms...) {
		found := connecting.Find(withoutComments(text))
		if found == nil {
			continue
		}
		isOwn := false
		for way := range ownWays {
			if name == way || strings.HasSuffix(way, "/") && strings.HasPrefix(name, way) {
				used[way], isOwn = true, true
			}
		}
		if !isOwn {
			t.Errorf("%s connects with %s: use pkg/dns/outbound", name, found)
		}
	}
	for _, way := range slices.Sorted(maps.Keys(ownWays)) {
		if !used[way] {
			t.Errorf("%s does not connect: take it out of ownWays", way)
		}
	}
}

// TestHTTPClientsAreBounded: the default client follows redirections, with our certificate and to wherever a server wants, and reads ten
// megabytes of headers, which take twenty times as much in memory.
func TestHTTPClientsAreBounded(t *testing.T) {
	needed := map[string]string{"Client": "CheckRedirect", "Transport": "MaxResponseHeaderBytes"}
	found := map[string]int{}
	for name, text := range goFiles(t, false, rooms...) {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(file) {
			literal, ok := node.(*ast.CompositeLit)
			if !ok {
				continue
			}
			kind, ok := literal.Type.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if of, ok := kind.X.(*ast.Ident); !ok || of.Name != "http" || needed[kind.Sel.Name] == "" {
				continue
			}
			found[kind.Sel.Name]++
			if !slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool { return isField(e, needed[kind.Sel.Name]) }) {
				t.Errorf("%s: an http.%s without %s", name, kind.Sel.Name, needed[kind.Sel.Name])
			}
		}
	}
	if found["Client"] == 0 || found["Transport"] == 0 {
		t.Errorf("found %v", found)
	}
}

// isField reports whether an element of a literal sets a field.
func isField(e ast.Expr, name string) bool {
	pair, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := pair.Key.(*ast.Ident)
	return ok && key.Name == name
}

// withoutComments takes lines and ends of lines out of a source that are comments.
func withoutComments(source []byte) []byte {
	return regexp.MustCompile(`(?m)(^|\s)//.*$`).ReplaceAll(source, nil)
}
