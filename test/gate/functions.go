package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// function is a test function.
type function struct {
	// folder is that of its package, from the repository's root.
	folder, name string
	// cluster is the kind that it declares. One that declares none needs no cluster.
	cluster clusterTests
}

// matching returns the stages that have a test whose name matches a selection. It is an error if there is none.
func matching(names []string, selected string) ([]string, error) {
	if selected == "" {
		return names, nil
	}
	functions, err := testFunctions(".")
	if err != nil {
		return nil, err
	}
	if functions, err = matchingFunctions(functions, selected); err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		s, err := stageNamed(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(functions, func(f function) bool { return s.has(&f) }) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no test matches %q in the stages %s", selected, strings.Join(names, ", "))
	}
	return found, nil
}

// matchingFunctions returns those whose names match a selection.
func matchingFunctions(functions []function, selected string) ([]function, error) {
	first, _, _ := strings.Cut(selected, "/")
	pattern, err := regexp.Compile(first)
	if err != nil {
		return nil, fmt.Errorf("the selection %q is no regular expression: %w", selected, err)
	}
	return slices.DeleteFunc(functions, func(f function) bool { return !pattern.MatchString(f.name) }), nil
}

// has reports whether a test belongs to the stage.
func (s *stage) has(f *function) bool {
	if s.cluster == noCluster && f.cluster != noCluster || s.cluster == serial && f.cluster != serial || s.cluster == isolated && f.cluster == serial {
		return false
	}
	if slices.Contains(s.without, f.name) || len(s.only) > 0 && !slices.Contains(s.only, f.name) {
		return false
	}
	return slices.ContainsFunc(s.packages, func(pattern string) bool {
		folder, deep := strings.CutSuffix(pattern, "/...")
		folder = filepath.Join(s.module, folder)
		return f.folder == folder || deep && (folder == "." || strings.HasPrefix(f.folder, folder+"/"))
	})
}

// testFunctions returns all test functions below a folder.
func testFunctions(root string) ([]function, error) { return functionsOf(root, "Test") }

// functionsOf returns the functions of tests below a folder whose names begin so: Test or Fuzz.
func functionsOf(root, begin string) ([]function, error) {
	var all []function
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && name != "." && name != ".." && (name[0] == '.' || name[0] == '_' || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && isTest(f, begin) {
				all = append(all, function{filepath.ToSlash(folder), f.Name.Name, declared(f)})
			}
		}
		return nil
	})
	return all, err
}

func isTest(f *ast.FuncDecl, begin string) bool {
	return f.Recv == nil && strings.HasPrefix(f.Name.Name, begin) && f.Name.Name != "TestMain" && len(f.Type.Params.List) == 1
}

// declared returns the kind that a test declares by a call of package kube.
func declared(f *ast.FuncDecl) clusterTests {
	kind := noCluster
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok {
				if name, ok := s.X.(*ast.Ident); ok && name.Name == "kube" {
					switch s.Sel.Name {
					case "Isolated":
						kind = isolated
					case "Disruptive":
						kind = serial
					}
				}
			}
		}
		return true
	})
	return kind
}
