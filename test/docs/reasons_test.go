package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// TestReasons: status.Table has each reason that the code has, once in a section, and no other.
func TestReasons(t *testing.T) {
	table := map[string]bool{}
	for _, section := range status.Table {
		here := map[string]bool{}
		for _, r := range section.Reasons {
			if here[r.Name] {
				t.Errorf("%s has two rows for %s", section.Title, r.Name)
			}
			if r.Means == "" || r.Do == "" {
				t.Errorf("%s does not say what %s means or what to do", section.Title, r.Name)
			}
			table[r.Name], here[r.Name] = true, true
		}
	}
	reasons := readReasons(t)
	if len(reasons) < 100 {
		t.Errorf("only %d reasons were found in the code", len(reasons))
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if !table[reason] {
			t.Errorf("the table in pkg/declared/status has no %s (%s)", reason, reasons[reason])
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(table)) {
		if reasons[reason] == "" {
			t.Errorf("the table in pkg/declared/status has %s, which the code does not have", reason)
		}
	}
}

// TestSentences: the words of a stored condition are in pkg/declared/status, those of a SyncStatus there or in pkg/syncstatus. Elsewhere there
// are only errors, and what they quote.
func TestSentences(t *testing.T) {
	files := token.NewFileSet()
	for _, file := range parseCode(t, files) {
		if file.Name.Name == "status" || file.Name.Name == "syncstatus" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || !isVerdict(call) {
				return true
			}
			ast.Inspect(call.Args[1], func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && text.Value != `""` {
					t.Errorf("%s: %s is a condition's words: let a function of pkg/declared/status make it", files.Position(text.Pos()), text.Value)
				}
				return true
			})
			return true
		})
	}
}

// isVerdict reports whether a call makes a verdict of pkg/declared/status with words of the caller's.
func isVerdict(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	return ok && from.Name == "status" && slices.Contains(verdicts, selector.Sel.Name)
}

var verdicts = []string{"True", "False", "Unknown"}

// readReasons returns all reasons in the code, each with a place where it is.
func readReasons(t *testing.T) map[string]string {
	t.Helper()
	r := reasonReader{files: token.NewFileSet(), constants: map[string]string{}, reasons: map[string]string{}}
	parsed := parseCode(t, r.files)
	for _, file := range parsed {
		r.readConstants(file)
	}
	for _, file := range parsed {
		r.readVerdicts(file)
	}
	return r.reasons
}

// parseCode parses all that may set a reason.
func parseCode(t *testing.T, files *token.FileSet) (parsed []*ast.File) {
	t.Helper()
	for name, text := range goFiles(t, false, rooms...) {
		file, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	return parsed
}

// reasonReader collects reasons from Go files.
type reasonReader struct {
	files *token.FileSet
	// constants are those of pkg/declared/status, by name.
	constants, reasons map[string]string
}

func (r reasonReader) add(reason string, at token.Pos) {
	r.reasons[reason] = r.files.Position(at).String()
}

// readConstants reads groups of constants that are called reasons, those of the type ServerState, and the rcodes' reasons.
func (r reasonReader) readConstants(file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					r.readValues(file, d.Doc.Text(), values)
				}
			}
		case *ast.FuncDecl: // (*wire.Error).Reason
			if file.Name.Name == "wire" && d.Name.Name == "Reason" {
				ast.Inspect(d, func(n ast.Node) bool {
					if result, ok := n.(*ast.ReturnStmt); ok {
						r.addLiteral(result.Results[0])
					}
					return true
				})
			}
		}
	}
}

func (r reasonReader) readValues(file *ast.File, comment string, spec *ast.ValueSpec) {
	state, isNamed := spec.Type.(*ast.Ident)
	for i, value := range spec.Values {
		name := spec.Names[i].Name
		if file.Name.Name == "status" {
			if text, ok := literal(value); ok {
				r.constants[name] = text
			}
		}
		isReason := strings.HasPrefix(comment, "Reasons ") || name == "recordRefused" || isNamed && state.Name == "ServerState"
		if isReason && !strings.HasSuffix(name, "Action") {
			r.addLiteral(value)
		}
		if codes, ok := value.(*ast.CompositeLit); ok && name == "rcodeReasons" {
			for _, element := range codes.Elts {
				r.addLiteral(element.(*ast.KeyValueExpr).Value)
			}
		}
	}
}

// readVerdicts reads the reasons of verdicts (status.True, False, Unknown) and of Events that are written where they are made.
func (r reasonReader) readVerdicts(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		function, own := call.Fun.(*ast.Ident)
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
			function, own = selector.Sel, isVerdict(call)
		}
		switch {
		case function == nil:
		case function.Name == "Eventf" && len(call.Args) > 3:
			r.addLiteral(call.Args[3])
		case own && len(call.Args) == 2 && slices.Contains(verdicts, function.Name):
			r.addArgument(call.Args[0])
		}
		return true
	})
}

func (r reasonReader) addArgument(e ast.Expr) {
	r.addLiteral(e)
	if selector, ok := e.(*ast.SelectorExpr); ok {
		e = selector.Sel
	}
	if name, ok := e.(*ast.Ident); ok && r.constants[name.Name] != "" {
		r.add(r.constants[name.Name], e.Pos())
	}
}

func (r reasonReader) addLiteral(e ast.Expr) {
	if text, ok := literal(e); ok {
		r.add(text, e.Pos())
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}
