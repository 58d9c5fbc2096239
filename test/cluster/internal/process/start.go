package process

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Spec says how to run a server.
type Spec struct {
	Name string
	Args []string // the executable's path first
	Env  []string // added to this process's environment
	// Inputs are the files that the server reads at its start: when one of
	// them changes, the server has to be started again.
	Inputs []string
	Log    string // where output goes, appended to
}

// Fingerprint changes when the arguments or an input file do.
func (s Spec) Fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", s.Args, s.Env)
	for _, f := range s.Inputs {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("reading an input of %s: %w", s.Name, err)
		}
		fmt.Fprintf(h, "%s %x\n", f, sha256.Sum256(b))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Start runs the server in a session of its own, away from the terminal, and
// records it in dir.
func Start(dir string, s Spec) (Record, error) {
	fp, err := s.Fingerprint()
	if err != nil {
		return Record{}, err
	}
	cmd, err := launchProcess(s)
	if err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	go func() { _ = cmd.Wait() }() // so that an early death is seen as one
	id, err := identifyProcess(cmd.Process.Pid)
	if err != nil {
		return Record{}, fmt.Errorf("%s ended as soon as it was started; see %s", s.Name, s.Log)
	}
	r := Record{Identity: id, Fingerprint: fp}
	if err := saveRecord(dir, s.Name, r); err != nil {
		_ = cmd.Process.Kill()
		return Record{}, fmt.Errorf("recording %s: %w", s.Name, err)
	}
	return r, nil
}

func launchProcess(s Spec) (*exec.Cmd, error) {
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(s.Args[0], s.Args[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}
