package kube

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var disruptive = flag.Bool("disruptive", false, "run the tests that disturb the whole cluster, one after the other, instead of all others")

// declared holds what the tests that called Isolated or Disruptive own, by their names: see guard.go. Disruptive ones own everything.
var declared sync.Map

// Isolated declares that a test changes nothing but its own namespaces, and cluster-scoped objects that it names after them, and
// installs Lockstep. Names in owned are those of other objects that are the test's. The clients of this package are refused everything
// else. The test runs at the same time as other isolated tests. Every test calls Isolated or Disruptive before anything else of this
// package.
func Isolated(t *testing.T, owned ...string) {
	t.Helper()
	if *disruptive {
		t.Skip("an isolated test; it runs without -disruptive")
	}
	declared.Store(t.Name(), append(owned, keyOf(t.Name())))
	t.Parallel()
	install(t)
}

// Disruptive declares that a test disturbs all others, because it stops or removes a component, replaces the certificate
// authority or changes a node, and installs Lockstep. The test runs alone, and only with the flag -disruptive. What it does
// in prepare disturbs nobody: the preparations of all tests run at the same time, and then one test after the other goes on.
// Tests without a preparation run before all others.
func Disruptive(t *testing.T, prepare func()) {
	t.Helper()
	if !*disruptive {
		t.Skip("a disruptive test; it runs with -disruptive")
	}
	declared.Store(t.Name(), []string(nil))
	if prepare == nil {
		install(t)
		t.Cleanup(func() { restore(t) })
		return
	}
	preparations.Add(1)
	t.Parallel() // returns after all tests of the package were here
	func() {
		defer preparations.Done()
		install(t)
		prepare()
	}()
	preparations.Wait()
	alone.Lock()
	began := time.Now()
	t.Cleanup(func() {
		defer alone.Unlock()
		restore(t)
		t.Logf("%s ran alone for %s", t.Name(), time.Since(began).Round(time.Second))
	})
}

// WithoutCluster declares that a test needs no cluster. It runs with the isolated tests.
func WithoutCluster(t *testing.T) {
	t.Helper()
	if *disruptive {
		t.Skip("a test without a cluster; it runs without -disruptive")
	}
}

var (
	preparations sync.WaitGroup
	alone        sync.Mutex
)

// Main runs the tests of a package that has disruptive ones: all of them prepare at the same time, however many there are.
func Main(m *testing.M) {
	flag.Parse()
	if *disruptive {
		if err := flag.Set("test.parallel", "100"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// owned returns what a test has declared, and fails one that has declared nothing, so that none can forget to.
func owned(t testing.TB) []string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	names, ok := declared.Load(name)
	if !ok {
		t.Fatalf("%s has to call kube.Isolated or kube.Disruptive first", name)
	}
	return names.([]string)
}
