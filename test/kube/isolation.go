package kube

import (
	"flag"
	"strings"
	"sync"
	"testing"
)

var disruptive = flag.Bool("disruptive", false, "run the tests that disturb the whole cluster, one after the other, instead of all others")

// declared holds the names of the tests that called Isolated or Disruptive.
var declared sync.Map

// Isolated declares that a test changes nothing outside its own namespaces, and installs Lockstep. The test runs at the same
// time as other isolated tests. Every test calls Isolated or Disruptive before anything else of this package.
//
// The death of the controller is nothing that disturbs others: every test has to survive it.
func Isolated(t *testing.T) {
	t.Helper()
	if *disruptive {
		t.Skip("an isolated test; it runs without -disruptive")
	}
	declared.Store(t.Name(), true)
	t.Parallel()
	install(t)
}

// Disruptive declares that a test disturbs all others, because it stops or removes a component, replaces the certificate
// authority or changes a node, and installs Lockstep. The test runs alone, and only with the flag -disruptive.
func Disruptive(t *testing.T) {
	t.Helper()
	if !*disruptive {
		t.Skip("a disruptive test; it runs with -disruptive")
	}
	declared.Store(t.Name(), true)
	install(t)
}

// requireDeclared fails a test that has declared neither, so that none can forget to.
func requireDeclared(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, ok := declared.Load(name); !ok {
		t.Fatalf("%s has to call kube.Isolated or kube.Disruptive first", name)
	}
}
