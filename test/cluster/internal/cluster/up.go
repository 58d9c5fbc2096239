package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/host"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/images"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/node"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// readyLimit is how long the node may take from the kubelet's start until it
// accepts pods.
const readyLimit = 2 * time.Minute

// Up brings the cluster to the state where it takes pods and has the project's
// images. What already runs as it should is left alone.
func (c *Cluster) Up(ctx context.Context) error {
	unlock, err := c.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.buildMissing(ctx); err != nil {
		return err
	}
	if err := c.prepareHost(ctx); err != nil {
		return err
	}
	if err := c.startStages(ctx); err != nil {
		return err
	}
	return c.Images.Load(ctx, c.Out, c.Layout.Socket(), c.Images.Project())
}

// buildMissing makes what is missing: the machine's programs, Kubernetes, the images.
// The images of our own programs wait until Kubernetes is being linked, which
// takes one core: sooner, packages that both need would be compiled twice.
func (c *Cluster) buildMissing(ctx context.Context) error {
	compiled := make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.Cache.Ensure(ctx, c.Out, func() { close(compiled) }) })
	g.Go(func() error {
		if err := c.Out.Phase("installing programs", func(*progress.Note) error {
			return host.InstallPrograms(ctx, c.Images.Root)
		}); err != nil {
			return err
		}
		return c.Images.Build(ctx, c.Out, c.Images.Servers())
	})
	g.Go(func() error {
		<-compiled
		return c.Images.Build(ctx, c.Out, append(c.Images.Sandbox(), c.Images.Components()...))
	})
	return g.Wait()
}

// prepareHost makes what the components need to find.
func (c *Cluster) prepareHost(ctx context.Context) error {
	if !c.hasTraces() {
		if err := host.CheckChains(ctx); err != nil {
			return err
		}
	}
	for _, dir := range c.Layout.Folders() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := c.Layout.WriteConfig(images.Pause); err != nil {
		return err
	}
	if err := c.Layout.EnsureCertificates(); err != nil {
		return err
	}
	if err := c.Layout.WriteKubeconfigs(); err != nil {
		return err
	}
	if err := host.ApplySettings(c.Layout.Settings()); err != nil {
		return err
	}
	if err := host.ConnectBridge(ctx, node.Network()); err != nil {
		return fmt.Errorf("making the pods' network: %w", err)
	}
	return host.AcceptBridge(ctx)
}

// startStages starts the stages one after the other. The sandbox image is loaded as
// soon as containerd is there, which is before the kubelet asks for it.
func (c *Cluster) startStages(ctx context.Context) error {
	for i, stage := range c.Layout.Stages() {
		if err := c.startStage(ctx, stage); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if err := c.Images.Load(ctx, c.Out, c.Layout.Socket(), c.Images.Sandbox()); err != nil {
			return err
		}
	}
	return c.Out.Phase("node "+node.Name+" becoming ready", func(*progress.Note) error {
		return waitUntilHealthy(ctx, readyLimit, c.Layout.Usable)
	})
}
