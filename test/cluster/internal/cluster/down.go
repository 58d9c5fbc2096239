package cluster

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/host"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/process"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// Down stops the cluster and removes everything of it but the cached binaries.
// It goes on after an error, so that as little as possible is left.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := c.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	if !c.hasTraces() {
		c.Out.Say("there is no dev cluster on this machine")
		return nil
	}
	stopped := c.Out.Phase("stopping the components", func(*progress.Note) error { return c.stopComponents() })
	if stopped != nil {
		return stopped // what runs still uses the rest
	}
	return c.Out.Phase("removing mounts, network and files", func(*progress.Note) error { return c.removeTraces(ctx) })
}

// stopComponents stops the components in the reverse order of their start, and then the
// containers, when nobody is left who would start them again.
func (c *Cluster) stopComponents() error {
	parts := slices.Concat(c.Layout.Stages()...)
	slices.Reverse(parts)
	for _, part := range parts {
		if err := process.Stop(c.Layout.Pids(), part.Name, part.Grace); err != nil {
			return err
		}
	}
	return killContainers(c.Layout)
}

// removeTraces takes back what was done to the machine.
func (c *Cluster) removeTraces(ctx context.Context) error {
	err := errors.Join(
		removeShimSockets(c.Layout),
		host.Unmount(c.Layout.State, c.Layout.Run),
		host.RemoveBridge(ctx),
		host.RemoveChains(ctx),
		host.RemoveCgroups(),
		host.RestoreSettings(c.Layout.Settings()),
		removeStrays(c.Layout),
	)
	if err != nil {
		return err // the state says what there is left to remove
	}
	return errors.Join(os.RemoveAll(c.Layout.Run), os.RemoveAll(c.Layout.State))
}
