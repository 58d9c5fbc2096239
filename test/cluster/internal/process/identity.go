package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Identity names one process for as long as the machine exists.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot, field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // the kernel's random id of this boot
}

// identifyProcess reads the identity of the running process pid.
func identifyProcess(pid int) (Identity, error) {
	st, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Start: st.start, Boot: boot}, nil
}

// Alive reports whether the process still runs. A zombie does not, unless
// threads of it do: those still hold its files and sockets.
func (id Identity) Alive() bool {
	boot, err := bootID()
	if err != nil || boot != id.Boot {
		return false
	}
	st, err := readStat(id.PID)
	return err == nil && st.start == id.Start && !st.isDead()
}

type processStat struct {
	state   byte
	threads uint64
	start   uint64
}

func (s processStat) isDead() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

func readStat(pid int) (processStat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	return parseStat(b)
}

// parseStat reads a line of proc_pid_stat(5). The second field, the name of
// the program in parentheses, may itself hold spaces and parentheses, so
// fields are counted from the last closing one.
func parseStat(b []byte) (processStat, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return processStat{}, fmt.Errorf("parsing process status %q: no program name", b)
	}
	fields := strings.Fields(string(b[i+1:])) // from field 3 on
	if len(fields) < 20 {
		return processStat{}, fmt.Errorf("parsing process status %q: %d fields after the name, want 20 or more", b, len(fields))
	}
	threads, err := strconv.ParseUint(fields[17], 10, 64)
	if err != nil {
		return processStat{}, fmt.Errorf("parsing the number of threads in process status %q: %w", b, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return processStat{}, fmt.Errorf("parsing the start time in process status %q: %w", b, err)
	}
	return processStat{state: fields[0][0], threads: threads, start: start}, nil
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
