// Package lockio finds calls that may wait for the network while a mutex is held. Whoever else needs the mutex would wait for
// somebody else's server, and one dead server of one tenant would hold up the passes of all. `make verify-locks` runs it.
//
// It follows the statements of each function, and the calls to functions of the same package. It does not follow functions that are
// values, nor other packages: of these, rules.go says what waits. An exception stands beside the call, with its reason:
//
//	b.client.Close() //lockio:allow it only cancels what is under way
package lockio

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// Analyzer is the analysis. It passes over tests.
var Analyzer = &analysis.Analyzer{
	Name: "lockio",
	Doc:  "report calls that may wait for the network while a mutex is held",
	Run: func(pass *analysis.Pass) (any, error) {
		c := &checker{Pass: pass, waits: map[*types.Func]string{}}
		c.run()
		return nil, nil
	},
}

// checker analyses one package.
type checker struct {
	*analysis.Pass
	// waits are the functions of the package that may wait for the network, with what they call for that.
	waits map[*types.Func]string
	// excused are the lines with exceptions.
	excused []*exception
}

// exception is a comment that excuses the calls on its line.
type exception struct {
	at   token.Pos
	used bool
}

const allow = "//lockio:allow"

func (c *checker) run() {
	var files []*ast.File
	for _, f := range c.Files {
		if !strings.HasSuffix(c.Fset.Position(f.Package).Filename, "_test.go") {
			files = append(files, f)
			c.findExceptions(f)
		}
	}
	c.findWaiting(files)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				c.walk(n.Body)
			case *ast.FuncLit: // One that is called where it stands is walked there as well.
				c.walk(n.Body)
			}
			return true
		})
	}
	for _, e := range c.excused {
		if !e.used {
			c.Reportf(e.at, "this exception excuses nothing: remove it")
		}
	}
}

func (c *checker) findExceptions(f *ast.File) {
	for _, group := range f.Comments {
		for _, comment := range group.List {
			reason, ok := strings.CutPrefix(comment.Text, allow)
			switch {
			case !ok:
			case strings.TrimSpace(reason) == "":
				c.Reportf(comment.Pos(), "this exception has no reason: write why nobody waits")
			default:
				c.excused = append(c.excused, &exception{at: comment.Pos()})
			}
		}
	}
}

// findWaiting finds the functions of the package that may wait, by what they call, until there are no more.
func (c *checker) findWaiting(files []*ast.File) {
	for more := true; more; {
		more = false
		for _, f := range files {
			for _, d := range f.Decls {
				declared, ok := d.(*ast.FuncDecl)
				if !ok || declared.Body == nil {
					continue
				}
				fn, ok := c.TypesInfo.Defs[declared.Name].(*types.Func)
				if !ok || c.waits[fn] != "" {
					continue
				}
				w := walker{checker: c, report: func(_ *ast.CallExpr, why, _ string) { c.waits[fn] = why }, always: true}
				w.block(declared.Body.List, nil)
				more = more || c.waits[fn] != ""
			}
		}
	}
}

// walk reports what waits in a function while a mutex is held.
func (c *checker) walk(body *ast.BlockStmt) {
	if body == nil {
		return
	}
	w := walker{checker: c, report: func(call *ast.CallExpr, why, lock string) {
		line := c.Fset.Position(call.Pos()).Line
		for _, e := range c.excused {
			if at := c.Fset.Position(e.at); at.Line == line && at.Filename == c.Fset.Position(call.Pos()).Filename {
				e.used = true
				return
			}
		}
		c.Reportf(call.Pos(), "%s may wait for the network while %s is held, and so does whoever needs it: call it without the lock", why, lock)
	}}
	w.block(body.List, nil)
}

// whyWaits says why a call may wait for the network; "" if it does not.
func (c *checker) whyWaits(call *ast.CallExpr) string {
	fn, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
	if !ok {
		return ""
	}
	fn = fn.Origin()
	if waitsByRule(fn) {
		return fn.FullName()
	}
	if why := c.waits[fn]; why != "" {
		if called, _, ok := strings.Cut(why, ", which "); ok {
			why = called // The next step is enough to find the rest.
		}
		return fmt.Sprintf("%s, which calls %s,", fn.Name(), strings.TrimSuffix(why, ","))
	}
	return ""
}

// walker follows the statements of one function.
type walker struct {
	*checker
	report func(call *ast.CallExpr, why, lock string)
	// always reports calls also while nothing is held.
	always bool
}

// locks are the mutexes that are held for sure, as they are written.
type locks []string

// block walks statements from those held before to those held after. It reports whether they end the path.
func (w walker) block(list []ast.Stmt, held locks) (after locks, ended bool) {
	for _, s := range list {
		if held, ended = w.statement(s, held); ended {
			return held, true
		}
	}
	return held, false
}

func (w walker) statement(s ast.Stmt, held locks) (after locks, ended bool) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return w.block(s.List, held)
	case *ast.LabeledStmt:
		return w.statement(s.Stmt, held)
	case *ast.IfStmt:
		held = w.nodes(held, s.Init, s.Cond)
		paths := []ast.Stmt{s.Body}
		if s.Else != nil {
			paths = append(paths, s.Else)
		}
		return w.branches(held, paths, s.Else == nil)
	case *ast.ForStmt:
		held = w.nodes(held, s.Init, s.Cond)
		after, _ = w.branches(held, []ast.Stmt{s.Body}, true)
		return w.nodes(after, s.Post), false
	case *ast.RangeStmt:
		after, _ = w.branches(w.nodes(held, s.X), []ast.Stmt{s.Body}, true)
		return after, false
	case *ast.SwitchStmt:
		return w.clauses(w.nodes(held, s.Init, s.Tag), s.Body)
	case *ast.TypeSwitchStmt:
		return w.clauses(w.nodes(held, s.Init, s.Assign), s.Body)
	case *ast.SelectStmt:
		return w.clauses(held, s.Body)
	case *ast.GoStmt:
		for _, argument := range s.Call.Args {
			held = w.nodes(held, argument)
		}
		return held, false
	case *ast.DeferStmt:
		if w.unlocks(s.Call) == "" { // Deferred calls run before those that were deferred earlier, which unlock.
			w.nodes(slices.Clone(held), s.Call)
		}
		return held, false
	case *ast.BranchStmt:
		return held, s.Tok != token.FALLTHROUGH
	}
	held = w.nodes(held, s)
	_, ended = s.(*ast.ReturnStmt)
	return held, ended || isPanic(s)
}

// branches walks statements of which one is executed, or none, and returns what is held after each of those that go on.
func (w walker) branches(held locks, paths []ast.Stmt, orNone bool) (after locks, ended bool) {
	ended = !orNone
	if orNone {
		after = held
	}
	for _, path := range paths {
		then, ends := w.statement(path, slices.Clone(held))
		switch {
		case ends:
		case ended:
			after, ended = then, false
		default:
			after = slices.DeleteFunc(slices.Clone(after), func(l string) bool { return !slices.Contains(then, l) })
		}
	}
	if ended {
		return held, true
	}
	return after, false
}

func (w walker) clauses(held locks, body *ast.BlockStmt) (after locks, ended bool) {
	var paths []ast.Stmt
	orNone := true
	for _, clause := range body.List {
		switch clause := clause.(type) {
		case *ast.CaseClause:
			for _, e := range clause.List {
				held = w.nodes(held, e)
			}
			orNone = orNone && clause.List != nil
			paths = append(paths, &ast.BlockStmt{List: clause.Body})
		case *ast.CommClause:
			orNone = false
			list := clause.Body
			if clause.Comm != nil {
				list = append([]ast.Stmt{clause.Comm}, list...)
			}
			paths = append(paths, &ast.BlockStmt{List: list})
		}
	}
	after, ended = w.branches(held, paths, orNone)
	return after, ended && !hasBreak(body)
}

// hasBreak reports whether a path leaves a switch by break, so that what follows is executed.
func hasBreak(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if b, ok := n.(*ast.BranchStmt); ok && b.Tok == token.BREAK {
			found = true
		}
		return !found
	})
	return found
}

// nodes walks the calls in some nodes, in the order of the text.
func (w walker) nodes(held locks, nodes ...ast.Node) locks {
	for _, n := range nodes {
		if n == nil || n == ast.Stmt(nil) || n == ast.Expr(nil) {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case nil:
				return false
			case *ast.FuncLit:
				return false // Who calls it when is not known.
			case *ast.CallExpr:
				held = w.call(n, held)
			}
			return true
		})
	}
	return held
}

// call walks a call: one that locks, unlocks, waits, or runs the functions in it.
func (w walker) call(call *ast.CallExpr, held locks) locks {
	for _, run := range w.runs(call) {
		w.block(run.Body.List, slices.Clone(held))
	}
	if lock := w.locks(call); lock != "" {
		return append(held, lock)
	}
	if lock := w.unlocks(call); lock != "" {
		if i := slices.Index(held, lock); i >= 0 {
			return slices.Delete(slices.Clone(held), i, i+1)
		}
		return held
	}
	if why := w.whyWaits(call); why != "" && (w.always || len(held) > 0) {
		w.report(call, why, strings.Join(held, " and "))
	}
	return held
}

// callers are packages whose functions call what they are given before they return.
var callers = map[string]bool{"slices": true, "maps": true, "sort": true, "strings": true}

// runs returns the function literals that a call runs before it returns.
func (w walker) runs(call *ast.CallExpr) (literals []*ast.FuncLit) {
	if f, ok := ast.Unparen(call.Fun).(*ast.FuncLit); ok {
		return []*ast.FuncLit{f}
	}
	fn, ok := typeutil.Callee(w.TypesInfo, call).(*types.Func)
	if !ok || fn.Pkg() == nil || !callers[fn.Pkg().Path()] && fn.FullName() != "(*sync.Once).Do" {
		return nil
	}
	for _, argument := range call.Args {
		if f, ok := argument.(*ast.FuncLit); ok {
			literals = append(literals, f)
		}
	}
	return literals
}

func (w walker) locks(call *ast.CallExpr) string {
	return w.mutexOf(call, "(*sync.Mutex).Lock", "(*sync.RWMutex).Lock", "(*sync.RWMutex).RLock")
}

func (w walker) unlocks(call *ast.CallExpr) string {
	return w.mutexOf(call, "(*sync.Mutex).Unlock", "(*sync.RWMutex).Unlock", "(*sync.RWMutex).RUnlock")
}

// mutexOf returns the mutex whose method is called, as it is written, if it is one of some methods.
func (w walker) mutexOf(call *ast.CallExpr, methods ...string) string {
	fn, ok := typeutil.Callee(w.TypesInfo, call).(*types.Func)
	at, isMethod := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !isMethod || !slices.Contains(methods, fn.FullName()) {
		return ""
	}
	return types.ExprString(at.X)
}

func isPanic(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}
