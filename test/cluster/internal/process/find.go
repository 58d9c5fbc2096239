package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Find returns the running processes whose arguments match accepts. Paths among
// arguments mean the same files only to processes with the same mounts, so
// others, such as those inside containers, are not considered.
func Find(match func(args []string) bool) ([]Identity, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		id, err := identifyProcess(pid) // before its arguments, so that they are its own
		if err != nil {
			continue // ended meanwhile
		}
		if sharesMounts(d) && match(readArguments(pid)) && id.Alive() {
			found = append(found, id)
		}
	}
	return found, nil
}

// Children returns the running children of a process.
func (id Identity) Children() ([]Identity, error) {
	if !id.Alive() {
		return nil, nil
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", id.PID))
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // that thread has ended
		}
		for _, s := range bytes.Fields(b) {
			pid, err := strconv.Atoi(string(s))
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", f, err)
			}
			if child, err := identifyProcess(pid); err == nil {
				found = append(found, child)
			}
		}
	}
	return found, nil
}

// sharesMounts reports whether the process of that folder of /proc is in the
// mount namespace of this one.
func sharesMounts(proc string) bool {
	its, err := os.Readlink(filepath.Join(proc, "ns", "mnt"))
	if err != nil {
		return false // ended, or not ours to look at
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	return err == nil && its == own
}

func readArguments(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return nil // ended, or a thread of the kernel
	}
	var args []string
	for a := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		args = append(args, string(a))
	}
	return args
}
