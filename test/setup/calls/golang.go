package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
)

// goPackage is the parsed code of a folder.
type goPackage struct {
	fset  *token.FileSet
	files []*ast.File
	// runners are functions that call a program, with the index of the argument that names it.
	runners map[string]int
}

// addGoCalls adds what the Go files of a folder call.
func addGoCalls(calls map[string]string, dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	p := goPackage{fset: token.NewFileSet(), runners: map[string]int{
		"exec.Command": 0, "exec.CommandContext": 1, "exec.LookPath": 0,
	}}
	for _, name := range names {
		file, err := parser.ParseFile(p.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
	}
	for known := -1; known < len(p.runners); {
		known = len(p.runners)
		p.findRunners()
	}
	p.eachCall(func(_ *ast.FuncDecl, call *ast.CallExpr, program ast.Expr) {
		if text, ok := program.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if name, err := strconv.Unquote(text.Value); err == nil {
				calls[name] = fmt.Sprint(p.fset.Position(call.Pos()))
			}
		}
	})
	return nil
}

// findRunners adds functions that hand a parameter to a runner that is known.
func (p *goPackage) findRunners() {
	p.eachCall(func(caller *ast.FuncDecl, _ *ast.CallExpr, program ast.Expr) {
		if name, ok := program.(*ast.Ident); ok {
			if i := slices.Index(parameters(caller), name.Name); i >= 0 {
				p.runners[caller.Name.Name] = i
			}
		}
	})
}

// eachCall visits the calls of runners.
func (p *goPackage) eachCall(visit func(caller *ast.FuncDecl, call *ast.CallExpr, program ast.Expr)) {
	for _, file := range p.files {
		for _, decl := range file.Decls {
			caller, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(caller, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if i, ok := p.runners[calledName(call)]; ok && i < len(call.Args) {
						visit(caller, call, call.Args[i])
					}
				}
				return true
			})
		}
	}
}

// calledName is f for f() and x.f(), and exec.F for the functions of os/exec.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "exec" {
			return "exec." + f.Sel.Name
		}
		return f.Sel.Name
	}
	return ""
}

func parameters(f *ast.FuncDecl) []string {
	var names []string
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}
