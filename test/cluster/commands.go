package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/cluster"
)

const usage = `usage: cluster COMMAND

  up             build and load the project's images, start the cluster or
                 repair it; builds Kubernetes the first time
  down           stop it and remove everything of it, except the built binaries
  status         show its processes
  kubeconfig     print the path of its kubeconfig
  build          build the binaries of Kubernetes
  bin-dir        print the folder of the binaries, kubectl among them
  images build   build the project's images into _output/images
  images bind    build those of BIND alone
  images patch   build those of BIND with the newest packages, load them, and
                 print what --bind9-image of the fleet manager takes
  images load    load them into the cluster; with -if-running, only if it runs
  images external-dns
                 load _output/external-dns/external-dns into it, as the image
                 that the component external-dns runs`

type command func(context.Context, *cluster.Cluster) error

var commands = map[string]command{
	"up":           startCluster,
	"down":         func(ctx context.Context, c *cluster.Cluster) error { return c.Down(ctx) },
	"status":       func(ctx context.Context, c *cluster.Cluster) error { return c.Status(ctx, os.Stdout) },
	"kubeconfig":   printValue(func(c *cluster.Cluster) string { return c.Layout.Kubeconfig() }),
	"build":        func(ctx context.Context, c *cluster.Cluster) error { return c.Cache.Ensure(ctx, c.Out, func() {}) },
	"bin-dir":      printValue(func(c *cluster.Cluster) string { return c.Cache.Bin }),
	"images build": buildImages,
	"images bind":  buildServers,
	"images patch": patchServers,
	"images load":  loadImages,

	"images external-dns":     loadExternalDNS,
	"images load -if-running": loadIfRunning,
}

func findCommand(args []string) (command, error) {
	if cmd, ok := commands[strings.Join(args, " ")]; ok {
		return cmd, nil
	}
	return nil, errors.New(usage)
}

func startCluster(ctx context.Context, c *cluster.Cluster) error {
	if err := c.Up(ctx); err != nil {
		return err
	}
	c.Out.Say("the cluster is ready: export KUBECONFIG=%s", c.Layout.Kubeconfig())
	return nil
}

func buildImages(ctx context.Context, c *cluster.Cluster) error {
	return c.Images.Build(ctx, c.Out, c.Images.Project())
}

func buildServers(ctx context.Context, c *cluster.Cluster) error {
	return c.Images.Build(ctx, c.Out, c.Images.Servers())
}

func patchServers(ctx context.Context, c *cluster.Cluster) error {
	recipes, flag, err := c.Images.Patched(ctx)
	if err != nil {
		return err
	}
	if err := c.Images.Build(ctx, c.Out, recipes); err != nil {
		return err
	}
	if err := c.LoadImages(ctx, recipes); err != nil {
		return err
	}
	fmt.Println(flag)
	return nil
}

func loadImages(ctx context.Context, c *cluster.Cluster) error {
	return c.LoadImages(ctx, c.Images.Project())
}

func loadExternalDNS(ctx context.Context, c *cluster.Cluster) error {
	recipes, err := c.Images.ExternalDNS(filepath.Join(c.Images.Root, "_output", "external-dns", "external-dns"))
	if err != nil {
		return err
	}
	if err := c.Images.Build(ctx, c.Out, recipes); err != nil {
		return err
	}
	return c.LoadImages(ctx, recipes)
}

func loadIfRunning(ctx context.Context, c *cluster.Cluster) error {
	if !c.Running(ctx) {
		c.Out.Say("the images are in %s; no dev cluster runs to load them into", c.Images.Out())
		return nil
	}
	return loadImages(ctx, c)
}

func printValue(value func(*cluster.Cluster) string) command {
	return func(_ context.Context, c *cluster.Cluster) error {
		_, err := fmt.Println(value(c))
		return err
	}
}
