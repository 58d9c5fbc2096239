package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/node"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/process"
)

// killContainers kills every container of our containerd, and the shims that
// watch over them. A shim is known by containerd's socket among its arguments.
func killContainers(l node.Layout) error {
	shims, err := process.Find(func(args []string) bool { return isShim(args, l.Socket()) })
	if err != nil {
		return err
	}
	var errs []error
	for _, shim := range shims {
		containers, err := shim.Children()
		errs = append(errs, err, shim.Terminate(0))
		for _, container := range containers {
			errs = append(errs, container.Terminate(0))
		}
	}
	return errors.Join(errs...)
}

// isShim reports whether the arguments are those of a shim of the containerd
// at the socket.
func isShim(args []string, socket string) bool {
	if len(args) == 0 || !strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") {
		return false
	}
	i := slices.Index(args, "-address")
	return i >= 0 && i+1 < len(args) && args[i+1] == socket
}

// removeShimSockets removes the sockets of shims that were killed. They lie in
// a folder that all of the machine's shims share; each task says which is its.
func removeShimSockets(l node.Layout) error {
	tasks, err := filepath.Glob(filepath.Join(l.Run, "containerd", "io.containerd.runtime.v2.task", "*", "*", "address"))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		address, err := os.ReadFile(task)
		if err != nil {
			continue // the task ended in order
		}
		socket := strings.TrimPrefix(string(address), "unix://")
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		// These fail while other shims have sockets there.
		_ = os.Remove(filepath.Dir(socket))
		_ = os.Remove(filepath.Dir(filepath.Dir(socket)))
	}
	return nil
}
