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

// declared holds, by the names of the tests that called Isolated or Disruptive, functions that end their turns.
var declared sync.Map

var (
	// isolated has the turns of the tests that called Isolated; Main sets it.
	isolated *turns
	// alone has the turns of those that called Disruptive.
	alone = &turns{free: 1}
	// unprepared are disruptive tests without a preparation, preparations those of the others.
	unprepared, preparations sync.WaitGroup
)

// Isolated declares that a test changes nothing outside its own namespaces, and installs Lockstep. The test runs at the same
// time as other isolated tests. Every test calls Isolated or Disruptive before anything else of this package.
//
// The death of the controller is nothing that disturbs others: every test has to survive it.
func Isolated(t *testing.T) {
	t.Helper()
	isolate(t, false)
}

// IsolatedLong is Isolated for a test that takes minutes: it begins before the others, so that nobody waits for it at the end.
func IsolatedLong(t *testing.T) {
	t.Helper()
	isolate(t, true)
}

func isolate(t *testing.T, long bool) {
	t.Helper()
	if *disruptive {
		t.Skip("an isolated test; it runs without -disruptive")
	}
	if isolated == nil {
		t.Fatal("the package needs func TestMain(m *testing.M) { kube.Main(m) }")
	}
	own := isolated.addTest(long)
	declared.Store(t.Name(), func() { isolated.end(own) })
	t.Parallel() // returns after all tests of the package were here
	t.Cleanup(func() { endTurn(t) })
	isolated.wait(own)
	install(t)
}

// Disruptive declares that a test disturbs all others, because it stops or removes a component, replaces the certificate
// authority or changes a node, and installs Lockstep. The test runs alone, and only with the flag -disruptive. What it does
// in prepare disturbs nobody: the preparations of all tests run at the same time, and then one test after the other goes on.
// Tests without a preparation run before all others. Each has its turn until it has nothing left but to wait for the end of its
// namespaces.
func Disruptive(t *testing.T, prepare func()) {
	t.Helper()
	if !*disruptive {
		t.Skip("a disruptive test; it runs with -disruptive")
	}
	own := alone.addTest(prepare == nil)
	if prepare == nil {
		unprepared.Add(1)
	} else {
		preparations.Add(1)
	}
	declared.Store(t.Name(), func() {
		if alone.end(own) && prepare == nil {
			unprepared.Done()
		}
	})
	t.Parallel() // returns after all tests of the package were here
	t.Cleanup(func() { endTurn(t) })
	if prepare != nil {
		unprepared.Wait()
		func() {
			defer preparations.Done()
			install(t)
			prepare()
		}()
		preparations.Wait()
	}
	alone.wait(own)
	began := time.Now()
	t.Cleanup(func() { t.Logf("%s ran alone for %s", t.Name(), time.Since(began).Round(time.Second)) })
	if prepare == nil {
		install(t)
	}
}

// endTurn lets another test have the turn of this one, if it is one and not a part of it.
func endTurn(t testing.TB) {
	if end, ok := declared.Load(t.Name()); ok {
		end.(func())()
	}
}

// WithoutCluster declares that a test needs no cluster. It runs with the isolated tests.
func WithoutCluster(t *testing.T) {
	t.Helper()
	if *disruptive {
		t.Skip("a test without a cluster; it runs without -disruptive")
	}
}

// Main runs the tests of a package. Of the isolated ones as many run at the same time as -parallel says, and the disruptive ones all prepare
// at the same time, however many there are.
func Main(m *testing.M) {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	isolated = &turns{free: parallel.(flag.Getter).Get().(int)}
	if err := parallel.Set("1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// requireDeclared fails a test that has declared neither, so that none can forget to.
func requireDeclared(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, ok := declared.Load(name); !ok {
		t.Fatalf("%s has to call kube.Isolated or kube.Disruptive first", name)
	}
}
