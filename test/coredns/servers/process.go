package servers

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/daemon"
)

// program is the environment variable that makes a test's executable one of the programs.
const program = "LOCKSTEP_TEST_PROGRAM"

// Run is a package's TestMain: it runs its tests, or in a child process a program.
func Run(m *testing.M) {
	if name := os.Getenv(program); name != "" {
		runProgram(name, os.Args)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// launch starts a program.
func launch(t testing.TB, name string, listens []netip.AddrPort, args ...string) *daemon.Process {
	t.Helper()
	return daemon.Launch(t, daemon.Program{Path: os.Args[0], Args: args, Env: []string{program + "=" + name}, Listens: listens})
}

// Eventually waits until a condition holds, for a minute at most.
func Eventually(t testing.TB, what string, holds func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
