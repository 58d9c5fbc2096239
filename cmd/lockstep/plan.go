package main

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/plugin/preview"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

// planCommand is for pipelines that have this program for "validate".
func planCommand() *cobra.Command {
	return clusterCommand("reach the cluster with", preview.ErrChanges, func(kubeconfig clientcmd.ClientConfig) *cobra.Command {
		return preview.NewCommand("lockstep", kubeconfig, func(io.Writer) render.Palette { return render.Palette{} })
	})
}
