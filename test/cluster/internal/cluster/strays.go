package cluster

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/node"
)

// Components put a few files in places that no configuration changes, and that
// another Kubernetes on the machine may use as well.
const (
	logLinks     = "/var/log/containers"
	cniResults   = "/var/lib/cni/results"
	devicePlugin = "/var/lib/kubelet/device-plugins/kubelet.sock"
)

// removeStrays removes those files that are the cluster's, and the folders
// that are empty without them.
func removeStrays(l node.Layout) error {
	return errors.Join(
		removeFiles(filepath.Join(logLinks, "*"), func(file string) bool {
			to, err := os.Readlink(file)
			return err == nil && strings.HasPrefix(to, l.State+"/")
		}),
		removeFiles(filepath.Join(cniResults, "*"), func(file string) bool {
			b, err := os.ReadFile(file)
			return err == nil && bytes.Contains(b, []byte(l.Run+"/"))
		}),
		removeFiles(devicePlugin, hasNoListener),
		removeDiscovery(),
	)
}

// removeDiscovery removes what kubectl remembers of the cluster's kinds, which
// the next cluster at the same address does not have.
func removeDiscovery() error {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil // then kubectl remembers nothing either
	}
	server := strings.NewReplacer("https://", "", ":", "_").Replace(node.Server)
	return os.RemoveAll(filepath.Join(home, ".kube", "cache", "discovery", server))
}

// removeFiles removes the files that match the pattern and are ours.
func removeFiles(pattern string, ours func(file string) bool) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !ours(f) {
			continue
		}
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Fails, as it should, for a folder with files of somebody else.
	dir := filepath.Dir(pattern)
	if os.Remove(dir) == nil {
		switch parent := filepath.Dir(dir); parent {
		case "/var/lib/cni", "/var/lib/kubelet":
			_ = os.Remove(parent)
		}
	}
	return nil
}

// hasNoListener reports whether nobody listens on a socket.
func hasNoListener(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err == nil {
		c.Close()
	}
	return err != nil
}
