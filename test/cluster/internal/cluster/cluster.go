// Package cluster starts and stops the dev cluster. It puts a half-dead one
// right, and removes all of it: processes, mounts, network, packet filter
// rules, control groups and files.
package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/build"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/host"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/images"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/node"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// Cluster is the one dev cluster of this machine.
type Cluster struct {
	Cache  *build.Cache
	Layout node.Layout
	Images images.Builder
	Out    *progress.Printer
}

// New describes the cluster that belongs to the repository at root.
func New(root string, out *progress.Printer) (*Cluster, error) {
	module := filepath.Join(root, "test", "cluster")
	cache, err := build.Open(module)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Cache:  cache,
		Layout: node.Default(cache.Bin),
		Images: images.Builder{Root: root, Module: module, Cache: cache.Downloads()},
		Out:    out,
	}, nil
}

// lockCluster keeps other commands that change the cluster waiting.
func (c *Cluster) lockCluster() (unlock func(), err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the dev cluster needs root: it makes network interfaces, mounts and packet filter rules; " +
			"run this as root, or set KUBECONFIG to use another cluster")
	}
	if err := os.MkdirAll(c.Cache.Root(), 0o755); err != nil {
		return nil, err
	}
	return host.Lock(filepath.Join(c.Cache.Root(), "lock"), func() {
		c.Out.Say("waiting for another command that starts or stops the cluster")
	})
}

// hasTraces reports whether there is anything of a cluster on this machine.
func (c *Cluster) hasTraces() bool {
	_, err := os.Stat(c.Layout.State)
	return !errors.Is(err, fs.ErrNotExist) || host.HasBridge()
}

// Running reports whether there is a containerd to load images into.
func (c *Cluster) Running(ctx context.Context) bool {
	return checkHealth(ctx, c.Layout.Containerd().Healthy) == nil
}

// LoadImages loads images into the running cluster.
func (c *Cluster) LoadImages(ctx context.Context, recipes []images.Recipe) error {
	unlock, err := c.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	if !c.Running(ctx) {
		return errors.New("the dev cluster does not run; start it with `make cluster-up`")
	}
	return c.Images.Load(ctx, c.Out, c.Layout.Socket(), recipes)
}
