package kube

import (
	"path/filepath"
	"testing"
)

// Program returns the path of a program that make prepare has built below _output. Tests build and download nothing themselves: a failure
// of that is no failure of a test.
func Program(t testing.TB, path string) string {
	t.Helper()
	return prepared(t, filepath.Join("_output", path))
}

// Definitions returns the folder with the definitions of another project's kinds, which make prepare has found.
func Definitions(t testing.TB, project string) string {
	t.Helper()
	return prepared(t, filepath.Join("_output", "definitions", project))
}

func prepared(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(Root(t), path)) // kubectl reads no folder by a symbolic link.
	if err != nil {
		t.Fatalf("%v: make prepare makes it", err)
	}
	return path
}
