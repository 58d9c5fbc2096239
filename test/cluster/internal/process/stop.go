package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Stop ends the named process, forgets it, and returns when it is gone. It
// asks first and, after grace, kills.
func Stop(dir, name string, grace time.Duration) error {
	r, ok, err := Load(dir, name)
	if err != nil || !ok {
		return err
	}
	if err := r.Terminate(grace); err != nil {
		return fmt.Errorf("stopping %s: %w", name, err)
	}
	if err := os.Remove(pidFile(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Terminate sends SIGTERM and, when the process has not ended after grace,
// SIGKILL.
func (id Identity) Terminate(grace time.Duration) error {
	if err := id.sendSignal(syscall.SIGTERM); err != nil {
		return err
	}
	if id.hasEnded(grace) {
		return nil
	}
	if err := id.sendSignal(syscall.SIGKILL); err != nil {
		return err
	}
	if !id.hasEnded(10 * time.Second) {
		return fmt.Errorf("process %d is still there 10s after SIGKILL", id.PID)
	}
	return nil
}

func (id Identity) sendSignal(sig syscall.Signal) error {
	if !id.Alive() {
		return nil
	}
	err := syscall.Kill(id.PID, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// hasEnded waits until the process has ended, at most for limit.
func (id Identity) hasEnded(limit time.Duration) bool {
	for end := time.Now().Add(limit); id.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
