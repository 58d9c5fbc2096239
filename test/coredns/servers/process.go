package servers

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/named"
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

// process is a child that can be stopped and started again.
type process struct {
	t    testing.TB
	name string
	args []string
	// listens are the reserved addresses that the program will listen on.
	listens []netip.AddrPort
	log     string
	cmd     *exec.Cmd
}

// newProcess starts a program. It is killed when the test ends; if that failed, its log is shown.
func newProcess(t testing.TB, name string, listens []netip.AddrPort, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, args: args, listens: listens, log: filepath.Join(t.TempDir(), name+".log")}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			log, _ := os.ReadFile(p.log)
			t.Logf("the end of %s %v:\n%s", name, args, log[max(0, len(log)-3000):])
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Env = append(os.Environ(), program+"="+p.name)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	named.Release(p.t, p.listens...)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
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
