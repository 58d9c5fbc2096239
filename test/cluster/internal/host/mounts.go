package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Unmount removes every mount below the folders, the innermost first.
func Unmount(folders ...string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range mountsBelow(b, folders) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow lists the mount points below the folders. Later mounts may lie
// on or inside earlier ones, so they come first.
func mountsBelow(mountinfo []byte, folders []string) []string {
	var points []string
	for s := bufio.NewScanner(bytes.NewReader(mountinfo)); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescapeMount(fields[4])
		if slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(point+"/", f+"/") }) {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}

// unescapeMount undoes the octal escapes that proc_pid_mountinfo(5) uses for
// blanks and backslashes.
func unescapeMount(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
