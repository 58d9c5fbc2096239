package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// cgroups are the control groups that the kubelet and containerd make, below
// the root of each hierarchy.
var cgroups = []string{"kubepods", "k8s.io"}

// RemoveCgroups removes the pods' control groups. The kernel refuses it for
// groups that hold processes.
func RemoveCgroups() error {
	var errs []error
	for _, name := range cgroups {
		for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
			dirs, err := filepath.Glob(pattern)
			errs = append(errs, err)
			for _, d := range dirs {
				errs = append(errs, removeCgroup(d))
			}
		}
	}
	return errors.Join(errs...)
}

func removeCgroup(dir string) error {
	var children []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			children = append(children, path)
		}
		return nil
	})
	for i := len(children) - 1; i >= 0; i-- { // the inner ones first
		if err := removeEmptyFolder(children[i]); err != nil {
			return err
		}
	}
	return nil
}

// removeEmptyFolder gives the kernel a moment to notice that the last process has gone.
func removeEmptyFolder(dir string) error {
	var err error
	for range 50 {
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
